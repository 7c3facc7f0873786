// Plain JavaScript, shared by our threads and processes.

/**
 * True when a driver's error says that another connection is in the way. While processes open and
 * close the log, the error has other names too (LOCKED, PROTOCOL). All of them mean: retry later.
 */
export function isBusy({ errcode, code }) {
  return errcode === undefined
    ? /^SQLITE_(BUSY|LOCKED|PROTOCOL)/.test(String(code))
    : [5, 6, 15].includes(errcode & 0xff);
}
