// Kept out of the bundle: native code, and threads that start from files.
export default {
  serverExternalPackages: ["holdfast", "better-sqlite3", "postgres"],
};
