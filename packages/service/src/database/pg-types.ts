import pg from 'pg';

const INT8 = 20;
const NUMERIC = 1700;
const DATE = 1082;
const WHOLE = /^-?\d{1,16}$/;

/** Counts and sums are whole and small: numbers when exact, else the text that PostgreSQL sent. */
const exactNumber = (value: string): number | string => {
  const number = WHOLE.test(value) ? Number(value) : Number.NaN;
  return Number.isSafeInteger(number) ? number : value;
};

/** A day has no time zone: it stays `2026-11-21`, where the driver would make it midnight of the machine's zone. */
const asText = (value: string): string => value;

/** Parsers of one connection's results, set here deliberately and for our connections alone, not for the whole process. */
export const typeParsers: pg.CustomTypesConfig = {
  getTypeParser: (oid, format) => {
    const type: number = oid;
    if (format !== 'binary') {
      if (type === INT8 || type === NUMERIC) return exactNumber;
      if (type === DATE) return asText;
    }
    return pg.types.getTypeParser(oid, format) as (value: string) => unknown;
  },
};
