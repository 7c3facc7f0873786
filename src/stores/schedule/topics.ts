/** What schedulers listen for: a schedule of the kind named by the key may be due at another time. */
export const scheduleChanged = "schedule.changed";
