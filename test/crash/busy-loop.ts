/** Keeps a core busy until it is killed, so that others are scheduled late. */
const until = Date.now() + 60_000;
while (Date.now() < until);
