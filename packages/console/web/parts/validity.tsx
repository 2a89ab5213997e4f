import { daysLeft } from '../api/certificates.ts';
import { day, number } from '../texts/format.ts';
import { certificatesWords } from '../texts/certificates.ts';
import { Pill } from './pills.tsx';

/** From so many days before its end on it is a matter. */
export const SOON_DAYS = 30;

/** Until when it is valid, and whether that is soon. */
export const Validity = ({ until }: { readonly until: string | undefined }) => {
  const certificates = certificatesWords.value;
  if (until === undefined) return null;
  const days = daysLeft(until);
  const mood = days < 0 ? 'bad' : days <= SOON_DAYS ? 'warn' : 'good';
  const word = days < 0 ? certificates.ended : certificates.days(number(days));
  return (
    <span class="row tight">
      <Pill mood={mood}>{word}</Pill>
      <span class="quiet">{day(until)}</span>
    </span>
  );
};
