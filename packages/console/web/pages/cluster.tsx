import { useAnswer } from '../api/answer.ts';
import { cluster } from '../api/attention.ts';
import type { Cluster } from '../api/attention.ts';
import { clusterStatus, runningByPod } from '../api/cluster.ts';
import type { Running } from '../api/cluster.ts';
import { app } from '../api/session.ts';
import { FailureNote } from '../parts/failure-note.tsx';
import { Card, Facts, Loading, Page } from '../parts/page.tsx';
import { Pill } from '../parts/pills.tsx';
import { colon, dateTime, fromNow, number } from '../texts/format.ts';
import { clusterWords } from '../texts/cluster.ts';
import { texts } from '../texts/index.ts';
import { nowWords } from '../texts/now.ts';

const EVERY_MS = 5000;

interface PodsProps {
  readonly of: Cluster;
  readonly running: Running | undefined;
}

const Pods = ({ of, running }: PodsProps) => {
  const { apps } = texts.value;
  const words = clusterWords.value;
  const now = nowWords.value;
  return (
    <section class="card flush" aria-label={now.pods}>
      <div class="frame">
        <table>
          <thead>
            <tr>
              <th scope="col">{words.pod}</th>
              <th scope="col">{words.state}</th>
              <th scope="col" class="narrow-off">
                {words.version}
              </th>
              <th scope="col" class="number">
                {words.sessions}
              </th>
              <th scope="col" class="number">
                {words.running}
              </th>
              <th scope="col" class="narrow-off">
                {words.address}
              </th>
              <th scope="col" class="narrow-off">
                {words.started}
              </th>
            </tr>
          </thead>
          <tbody>
            {of.members.map((pod) => (
              <tr key={`${pod.app} ${pod.name}`}>
                <td class="name">
                  <strong>{pod.name}</strong>
                  <div class="quiet">
                    {apps[pod.app]}
                    {pod.isLeader && of.enabled && ` · ${now.leader}`}
                  </div>
                </td>
                <td>
                  <Pill mood={pod.ready === null ? '' : pod.ready ? 'good' : 'bad'}>
                    {pod.ready === null ? words.unknown : pod.ready ? words.ready : now.notReady}
                  </Pill>
                  {pod.notReadyReason !== null && <div>{pod.notReadyReason}</div>}
                </td>
                <td class="narrow-off">{pod.version}</td>
                <td class="number">{pod.sessions === null ? '' : number(pod.sessions)}</td>
                <td class="number">
                  {pod.app === app.value && running !== undefined && (
                    <a href={`/transfers?status=IN_PROGRESS&node=${encodeURIComponent(pod.name)}`}>
                      {number(running.of.get(pod.name) ?? 0)}
                      {running.isWhole ? '' : '+'}
                    </a>
                  )}
                </td>
                <td class="narrow-off">{pod.address}</td>
                <td class="narrow-off">
                  <time dateTime={pod.startedAt} title={dateTime(pod.startedAt)}>
                    {fromNow(pod.startedAt)}
                  </time>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
};

/** The pods of both apps: who leads, who is ready and why not, and what each of them has to do. */
export const ClusterPage = () => {
  const { pages } = texts.value;
  const words = clusterWords.value;
  const overview = useAnswer('cluster', cluster, EVERY_MS);
  const status = useAnswer('cluster status', clusterStatus, EVERY_MS);
  const running = useAnswer(`running ${app.value}`, runningByPod, EVERY_MS);
  const all = [overview, status, running];
  const failed = all.find(({ failure }) => failure !== undefined);
  const { value } = overview;
  const redis = status.value?.redis;
  const versions = new Set((value?.members ?? []).flatMap(({ version }) => version ?? []));
  return (
    <Page title={pages.cluster}>
      <FailureNote
        failure={failed?.failure}
        again={() => all.forEach(({ ask }) => ask())}
        isStale={failed?.value !== undefined}
      />
      {value === undefined ? (
        failed === undefined && <Loading />
      ) : (
        <>
          {!value.enabled && <p class="note">{words.single}</p>}
          {versions.size > 1 && <p class="note warn">{words.versions([...versions].join(', '))}</p>}
          {redis !== undefined && redis !== null && !redis.connected && (
            <p class="note bad">{words.redisAway(dateTime(redis.since))}</p>
          )}
          <Pods of={value} running={running.value} />
          <Card title={words.facts}>
            <Facts
              of={[
                [words.name, value.clusterName],
                [words.pods, number(value.memberCount)],
                ...value.members
                  .filter(({ isLeader }) => isLeader && value.enabled)
                  .map(
                    ({ name, app: kind }) => [`${words.leader}${colon.value} ${texts.value.apps[kind]}`, name] as const,
                  ),
                [words.redis, redis === undefined || redis === null ? null : redis.connected ? words.connected : null],
              ]}
            />
            <p class="quiet">{words.drain}</p>
          </Card>
        </>
      )}
    </Page>
  );
};
