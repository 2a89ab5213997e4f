/** Sizes, rates and times as people read them. */
const UNITS = ['B', 'KB', 'MB', 'GB', 'TB'] as const;

/** `12.3 MB`, in units of 1,000. */
export const size = (bytes: number): string => {
  let value = bytes;
  let unit = 0;
  while (value >= 1000 && unit < UNITS.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${unit === 0 ? value : value.toFixed(1)} ${UNITS[unit] ?? ''}`;
};

/** @param ms milliseconds */
export const rate = (bytes: number, ms: number): string => `${size(Math.round((bytes / Math.max(ms, 1)) * 1000))}/s`;

/** `0.42 s`, `3:07`, `1:02:03`. */
export const time = (ms: number): string => {
  if (ms < 60_000) return `${(ms / 1000).toFixed(2)} s`;
  const seconds = Math.round(ms / 1000);
  const two = (value: number): string => String(value).padStart(2, '0');
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor((seconds % 3600) / 60)];
  return hours > 0 ? `${hours}:${two(minutes)}:${two(seconds % 60)}` : `${minutes}:${two(seconds % 60)}`;
};

/** Rows under headings, in columns as wide as their widest value. @param max most characters of a value */
export const table = (headings: readonly string[], rows: readonly (readonly string[])[], max = 60): string[] => {
  const short = (text: string): string => (text.length > max ? `${text.slice(0, max - 1)}…` : text);
  const cells = [headings.map((text) => text.toUpperCase()), ...rows.map((row) => row.map(short))];
  const widths = headings.map((_, i) => Math.max(...cells.map((row) => row[i]?.length ?? 0)));
  return cells.map((row) =>
    row
      .map((text, i) => text.padEnd(widths[i] ?? 0))
      .join('  ')
      .trimEnd(),
  );
};
