const units = ["bytes", "KiB", "MiB", "GiB", "TiB"] as const;

/** `17 bytes`, `4.0 KiB`, `12 MiB` */
export function spokenBytes(bytes: number): string {
  let size = bytes;
  let unit = 0;
  while (size >= 1_024 && unit < units.length - 1) {
    size /= 1_024;
    unit += 1;
  }
  const digits = unit === 0 || size >= 10 ? 0 : 1;
  return `${size.toFixed(digits)} ${units[unit]}`;
}
