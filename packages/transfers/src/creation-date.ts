/** PI 51 is `YYMMDDhhmmss` in the time of its sender; the interface shows it as a date-time without a zone. */
const two = (value: number): string => String(value % 100).padStart(2, '0');

/** PI 51 of a moment, by the clock of this machine. */
export const pesitDate = (date: Date): string =>
  [date.getFullYear(), date.getMonth() + 1, date.getDate(), date.getHours(), date.getMinutes(), date.getSeconds()]
    .map(two)
    .join('');

/** `2026-11-21T09:30:15` as PI 51. */
export const asPesitDate = (text: string): string => text.slice(2).replace(/[-T:]/g, '');

/** PI 51 as the interface shows it; as it came when it is no date; null: none. */
export const showDate = (value: string | null): string | null => {
  const [, year, month, day, hour, minute, second] = /^(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)$/.exec(value ?? '') ?? [];
  if (year === undefined) return value;
  return `${Number(year) < FIRST_YEAR ? '20' : '19'}${year}-${month}-${day}T${hour}:${minute}:${second}`;
};

/** Two digits of a year are of 1970 to 2069. */
const FIRST_YEAR = 70;

/** A date-time without a zone that PI 51 can hold. */
export const isCreationDate = (text: string): boolean => {
  if (!/^(?:19[7-9]\d|20[0-6]\d)-\d\d-\d\dT\d\d:\d\d:\d\d$/.test(text)) return false;
  const time = Date.parse(`${text}Z`);
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(text);
};
