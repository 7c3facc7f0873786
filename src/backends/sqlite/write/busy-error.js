// Plain JavaScript, shared by our threads and processes.

/**
 * Whether a driver's error says that somebody else is in the way. While
 * processes open and close the log it comes under other names too (LOCKED,
 * PROTOCOL): all mean, try later.
 */
export function isBusy({ errcode, code }) {
  return errcode === undefined
    ? /^SQLITE_(BUSY|LOCKED|PROTOCOL)/.test(String(code))
    : [5, 6, 15].includes(errcode & 0xff);
}
