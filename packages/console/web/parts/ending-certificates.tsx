import { daysLeft } from '../api/certificates.ts';
import { MOST_ENDING, useOf } from '../api/ending.ts';
import type { Ending, Endings } from '../api/ending.ts';
import { colon, dateTime, number } from '../texts/format.ts';
import { texts } from '../texts/index.ts';
import { nowWords } from '../texts/now.ts';
import type { Matter } from './matter.ts';

const toDo = (one: Ending, isManaged: boolean): string => {
  const { renew } = nowWords.value;
  return isManaged ? renew.managed : renew[one.kind];
};

const matterOf = (one: Ending, known: Endings): Matter => {
  const { common } = texts.value;
  const now = nowWords.value;
  const days = daysLeft(one.until);
  const use = useOf(known, one);
  const of = now.certificateOf[one.kind](one.name);
  const used = use === undefined ? '' : use.usedBy.join(', ');
  return {
    key: `certificate ${one.kind} ${one.name}`,
    mood: days < 0 ? 'bad' : 'warn',
    word: now.certificateWord,
    title: days < 0 ? now.certificateEnded(of) : now.certificate(of, number(days)),
    say: (
      <>
        <span>
          {now.ends}
          {colon.value} {dateTime(one.until)}
          {use !== undefined && ` · ${used === '' ? now.unused : now.usedBy(used)}`}
        </span>
        <span>
          <strong>
            {common.whatToDo}
            {colon.value}
          </strong>{' '}
          {toDo(one, use?.isManaged === true)}
        </span>
      </>
    ),
    link: ['/certificates', now.toCertificates],
  };
};

/** Those that have ended, and those that will, soonest first; a long list is cut short. */
export const endingMatters = (known: Endings): Readonly<Record<'ended' | 'soon', readonly Matter[]>> => {
  const now = nowWords.value;
  const sorted = [...known.of].sort((a, b) => a.until.localeCompare(b.until));
  const shown = sorted.slice(0, MOST_ENDING).map((one) => matterOf(one, known));
  const rest = sorted.length - shown.length;
  const more: Matter = {
    ...{ key: 'certificates', mood: 'warn', word: now.certificateWord, say: null },
    ...{ title: now.moreCertificates(number(rest)), link: ['/certificates', now.toCertificates] },
  };
  return {
    ended: shown.filter(({ mood }) => mood === 'bad'),
    soon: [...shown.filter(({ mood }) => mood === 'warn'), ...(rest > 0 ? [more] : [])],
  };
};
