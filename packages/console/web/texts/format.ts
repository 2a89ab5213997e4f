/** Numbers, sizes and times as the language of the person writes them. */
import { computed } from '@preact/signals';

import { language } from './index.ts';

const formats = computed(() => {
  // As it is written where the person is: `en-GB` has other dates than `en`.
  const tag = navigator.languages.find((one) => one.slice(0, 2) === language.value) ?? language.value;
  return {
    whole: new Intl.NumberFormat(tag, { maximumFractionDigits: 0 }),
    short: new Intl.NumberFormat(tag, { maximumSignificantDigits: 3 }),
    date: new Intl.DateTimeFormat(tag, { dateStyle: 'medium', timeStyle: 'medium' }),
    clock: new Intl.DateTimeFormat(tag, { timeStyle: 'medium' }),
    day: new Intl.DateTimeFormat(tag, { dateStyle: 'medium' }),
    exact: new Intl.DateTimeFormat(tag, {
      ...{ hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23', fractionalSecondDigits: 3 },
    }),
    minute: new Intl.DateTimeFormat(tag, { hour: '2-digit', minute: '2-digit' }),
    shortDay: new Intl.DateTimeFormat(tag, { day: 'numeric', month: 'short', timeZone: 'UTC' }),
    ago: new Intl.RelativeTimeFormat(tag, { numeric: 'auto' }),
    unit: language.value === 'fr' ? ['o', 'ko', 'Mo', 'Go', 'To'] : ['B', 'KB', 'MB', 'GB', 'TB'],
  };
});

/** Between a name and its value. */
export const colon = computed(() => (language.value === 'fr' ? '\u00a0:' : ':'));

export const number = (value: number): string => formats.value.whole.format(value);

/** Powers of 1,000. */
export const bytes = (value: number): string => {
  const { unit, short } = formats.value;
  const power = value < 1000 ? 0 : Math.min(Math.floor(Math.log10(value) / 3), unit.length - 1);
  return `${short.format(value / 1000 ** power)} ${unit[power] ?? ''}`;
};

/** Not rounded. @param power of 1,000 */
export const exactBytes = (value: number, power: 0 | 1): string =>
  `${number(value)} ${formats.value.unit[power] ?? ''}`;

/** @param value bytes a second */
export const rate = (value: number): string => `${bytes(value)}/s`;

/** @param value milliseconds */
export const span = (value: number): string => {
  if (value < 1000) return `${number(value)} ms`;
  const seconds = value / 1000;
  if (seconds < 60) return `${formats.value.short.format(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.floor(seconds % 60)} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${number(Math.floor(hours / 24))} d ${hours % 24} h`;
};

/** A time of today by its clock alone. @param value ISO 8601 */
export const time = (value: string): string => {
  const date = new Date(value);
  const isToday = date.toDateString() === new Date().toDateString();
  return (isToday ? formats.value.clock : formats.value.date).format(date);
};

export const dateTime = (value: string): string => formats.value.date.format(new Date(value));

export const day = (value: string): string => formats.value.day.format(new Date(value));

/** By the clock, with its milliseconds: FPDUs come within a few. @param value ISO 8601 */
export const exactTime = (value: string): string => formats.value.exact.format(new Date(value));

/** Hour and minute. @param at milliseconds since 1970 */
export const shortTime = (at: number): string => formats.value.minute.format(at);

/** Day and month, UTC. @param at milliseconds since 1970 */
export const shortDay = (at: number): string => formats.value.shortDay.format(at);

const STEPS = [
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
  ['second', 1],
] as const;

/** From now: `in 5 minutes`, `2 hours ago`. */
export const fromNow = (value: string, now: number = Date.now()): string => {
  const seconds = Math.round((Date.parse(value) - now) / 1000);
  const [unit, size] = STEPS.find(([, one]) => Math.abs(seconds) >= one) ?? ['second', 1];
  return formats.value.ago.format(Math.round(seconds / size), unit);
};
