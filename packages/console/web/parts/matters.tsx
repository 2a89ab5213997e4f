import type { Advice, Cluster, FailureGroup, Failures, Health, Listener, RemoteServer } from '../api/attention.ts';
import type { Endings } from '../api/ending.ts';
import type { License } from '../api/license.ts';
import { nameOf } from '../api/transfers.ts';
import { colon, number, time } from '../texts/format.ts';
import { texts } from '../texts/index.ts';
import { nowWords } from '../texts/now.ts';
import { endingMatters } from './ending-certificates.tsx';
import type { Matter } from './matter.ts';
import { Empty } from './page.tsx';
import { Pill } from './pills.tsx';

export interface Known {
  readonly failures: Failures | undefined;
  /** Of the first of them, by their last transfer. */
  readonly advice: ReadonlyMap<string, Advice>;
  readonly health: Health | undefined;
  readonly license: License | undefined;
  readonly cluster: Cluster | undefined;
  readonly listeners: readonly Listener[];
  readonly servers: readonly RemoteServer[];
  readonly endings: Endings;
}

const LICENSE_DAYS = 30;
/** More are told of together. */
const MOST_GROUPS = 20;

const reasonOf = (details: Readonly<Record<string, unknown>> | undefined): string =>
  Object.entries(details ?? {})
    .filter(([, value]) => typeof value === 'string' || typeof value === 'number')
    .map(([name, value]) => (name === 'reason' ? String(value) : `${name}: ${String(value)}`))
    .join(' · ');

const failed = (group: FailureGroup, isWhole: boolean, advice: Advice | undefined): Matter => {
  const { common, status } = texts.value;
  const now = nowWords.value;
  const { diagnostic, peer, count, last } = group;
  const shown = isWhole ? number(count) : now.atLeast(number(count));
  const one = count === 1;
  const query = new URLSearchParams({
    status: 'FAILED',
    ...(diagnostic === null ? {} : { diagnostic }),
  });
  return {
    key: `${diagnostic ?? ''} ${peer}`,
    mood: 'bad',
    word: status.FAILED,
    title: `${peer} · ${now.failures(shown)}`,
    say: (
      <>
        <span>
          {diagnostic !== null && <code>{diagnostic}</code>} {advice?.words ?? last.reason}
        </span>
        {typeof advice?.whatToDo === 'string' && (
          <span>
            <strong>
              {common.whatToDo}
              {colon.value}
            </strong>{' '}
            {advice.whatToDo}
          </span>
        )}
        <span class="quiet">
          {now.last}
          {colon.value} <a href={`/transfers/${last.id}`}>{nameOf(last)}</a>, {time(last.since)}
        </span>
      </>
    ),
    link: one ? [`/transfers/${last.id}`, now.showOne] : [`/transfers?${query.toString()}`, now.show],
  };
};

/** What failed: groups that are many are told of together, as a page of hundreds says nothing and takes long to draw. */
const failuresOf = ({ failures, advice }: Known): readonly Matter[] => {
  const { groups = [], isWhole = true } = failures ?? {};
  const shown = groups.slice(0, MOST_GROUPS).map((group) => failed(group, isWhole, advice.get(group.last.id)));
  const rest = groups.slice(MOST_GROUPS).reduce((sum, { count }) => sum + count, 0);
  if (rest === 0) return shown;
  const now = nowWords.value;
  const title = now.moreFailures(isWhole ? number(rest) : now.atLeast(number(rest)));
  const word = texts.value.status.FAILED;
  return [
    ...shown,
    { key: 'more failures', mood: 'bad', word, title, say: null, link: ['/transfers?status=FAILED', now.show] },
  ];
};

/** Everything that needs attention: what stops the service, then what failed, then what will. */
const mattersOf = (known: Known): readonly Matter[] => {
  const { health, license, cluster, listeners, servers, endings } = known;
  const { pages, listenerStatus, serverStatus } = texts.value;
  const now = nowWords.value;
  const certificates = endingMatters(endings);
  const down = Object.entries(health?.components ?? {}).filter(([, { status }]) => status !== 'UP');
  return [
    ...down.map(([name, { status, details }]): Matter => ({
      ...{ key: `health ${name}`, mood: 'bad', word: now.health[status], title: now.component(name) },
      say: <span>{reasonOf(details)}</span>,
    })),
    ...listeners
      .filter(({ wanted, status }) => wanted && status !== 'RUNNING')
      .map(({ serverId, status, statusReason }): Matter => ({
        ...{
          key: `listener ${serverId}`,
          mood: 'bad',
          word: listenerStatus[status],
          title: now.listenerDown(serverId),
        },
        say: <span>{statusReason}</span>,
        link: [`/listeners/${encodeURIComponent(serverId)}`, now.toListener],
      })),
    ...servers
      .filter(({ circuit }) => circuit !== null && circuit.state !== 'CLOSED')
      .map(({ id, name, status, circuit }): Matter => ({
        ...{ key: `server ${name}`, mood: 'bad', word: serverStatus[status], title: now.circuitOpen(name) },
        say: (
          <span>
            {circuit?.reason}{' '}
            {typeof circuit?.nextTry === 'string' && `· ${now.nextTry}${colon.value} ${time(circuit.nextTry)}`}
          </span>
        ),
        link: [`/servers/${id}`, now.toServer],
      })),
    ...certificates.ended,
    ...failuresOf(known),
    ...(cluster?.members ?? [])
      .filter(({ ready }) => ready === false)
      .map(({ name, notReadyReason }): Matter => ({
        ...{ key: `pod ${name}`, mood: 'warn', word: now.notReady, title: now.podDown(name) },
        say: <span>{notReadyReason}</span>,
        link: ['/cluster', now.toPods],
      })),
    ...certificates.soon,
    ...(license !== undefined && license.daysUntilExpiration <= LICENSE_DAYS && !license.blocked
      ? [
          {
            key: 'license',
            mood: 'warn',
            word: pages.license,
            title: (license.evaluation ? now.evaluation : now.license)(number(license.daysUntilExpiration)),
            say: <span>{license.message}</span>,
            link: ['/license', now.toLicense],
          } satisfies Matter,
        ]
      : []),
  ];
};

/** What needs attention first, each with its reason and what to do. */
export const Matters = ({ of }: { readonly of: Known }) => {
  const now = nowWords.value;
  const matters = mattersOf(of);
  if (matters.length === 0) {
    return (
      <Empty title={now.allWell}>
        <span>{now.allWellHint}</span>
      </Empty>
    );
  }
  return (
    <ul class="matters">
      {matters.map(({ key, mood, word, title, say, link }) => (
        <li key={key}>
          <Pill mood={mood}>{word}</Pill>
          <div class="say">
            <strong>{title}</strong>
            {say}
          </div>
          {link !== undefined && (
            <a class="button" href={link[0]}>
              {link[1]}
            </a>
          )}
        </li>
      ))}
    </ul>
  );
};
