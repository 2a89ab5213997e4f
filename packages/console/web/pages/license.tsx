import { useState } from 'preact/hooks';

import { useAnswer } from '../api/answer.ts';
import { extendEvaluation, installLicense, readLicense } from '../api/license.ts';
import type { License } from '../api/license.ts';
import { logInAgain, may } from '../api/session.ts';
import { useAction } from '../parts/action.tsx';
import { FailureNote } from '../parts/failure-note.tsx';
import { Card, Facts, Loading, Page } from '../parts/page.tsx';
import { Pill } from '../parts/pills.tsx';
import { day, number } from '../texts/format.ts';
import { texts } from '../texts/index.ts';
import { licenseWords } from '../texts/license.ts';

/** From so many days before its end on it is a matter. */
const SOON_DAYS = 30;

const State = ({ of }: { readonly of: License }) => {
  const license = licenseWords.value;
  const many = (value: number): string => (value < 0 ? texts.value.common.unlimited : number(value));
  const mood = of.blocked ? 'bad' : of.daysUntilExpiration <= SOON_DAYS ? 'warn' : 'good';
  return (
    <Card title={license.state} actions={<Pill mood={mood}>{of.type}</Pill>}>
      <p class={`note ${mood}`}>{of.message}</p>
      <Facts
        of={[
          [license.customer, of.customer],
          [license.id, of.licenseId === null ? null : <code>{of.licenseId}</code>],
          [license.ends, `${day(of.expirationDate)} (${license.days(number(of.daysUntilExpiration))})`],
          [license.clusters, many(of.maxClusters)],
          [license.pods, many(of.maxPodsPerCluster)],
          [license.key, <code key="key">{of.publicKey.fingerprint}</code>],
        ]}
      />
    </Card>
  );
};

const Install = ({ installed }: { readonly installed: () => void }) => {
  const [text, setText] = useState('');
  const [isDone, setDone] = useState(false);
  const action = useAction();
  const license = licenseWords.value;
  const allowsLess = action.failure?.status === 409;
  const install = (anyway: boolean): void =>
    action.run(async () => {
      setDone(false);
      await installLicense(text.trim(), anyway);
      await logInAgain();
      setText('');
      setDone(true);
      installed();
    });
  return (
    <Card title={license.install}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          install(false);
        }}
      >
        <label class="field">
          <span>{license.text}</span>
          <textarea
            class="mono"
            rows={6}
            required
            spellcheck={false}
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
          />
        </label>
        <label class="field">
          <span>{license.file}</span>
          <input
            type="file"
            onChange={(event) => {
              const file = event.currentTarget.files?.[0];
              if (file !== undefined) action.run(async () => setText(await file.text()));
            }}
          />
        </label>
        <FailureNote failure={action.failure} />
        {isDone && (
          <p class="note good" role="status">
            {license.installed}
          </p>
        )}
        <div class="row">
          <button class="button main" disabled={action.isRunning}>
            {license.install}
          </button>
          {allowsLess && (
            <button type="button" class="button danger" disabled={action.isRunning} onClick={() => install(true)}>
              {license.anyway}
            </button>
          )}
        </div>
      </form>
    </Card>
  );
};

const Extend = ({ extended }: { readonly extended: () => void }) => {
  const [days, setDays] = useState('30');
  const action = useAction();
  const license = licenseWords.value;
  return (
    <Card title={license.extend}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          action.run(() => extendEvaluation(Number(days)).then(logInAgain).then(extended));
        }}
      >
        <label class="field">
          <span>{license.daysMore}</span>
          <input
            type="number"
            min={1}
            max={365}
            required
            value={days}
            onInput={(event) => setDays(event.currentTarget.value)}
          />
        </label>
        <FailureNote failure={action.failure} />
        <div class="row">
          <button class="button" disabled={action.isRunning}>
            {license.extend}
          </button>
        </div>
      </form>
    </Card>
  );
};

/** The license in force; an admin installs another one, or extends the evaluation. It is there also while the license blocks the rest. */
export const LicensePage = () => {
  const { pages } = texts.value;
  const { value, failure, ask } = useAnswer('license', readLicense, 60_000);
  return (
    <Page title={pages.license}>
      <FailureNote failure={failure} again={ask} isStale={value !== undefined} />
      {value === undefined ? failure === undefined && <Loading /> : <State of={value} />}
      {may('admin') && value !== undefined && (
        <div class="columns">
          <Install installed={ask} />
          {value.evaluation && <Extend extended={ask} />}
        </div>
      )}
    </Page>
  );
};
