import { useRef, useState } from 'preact/hooks';

import { useAnswer } from '../api/answer.ts';
import { daysLeft, firstEnd, keystores } from '../api/certificates.ts';
import { allFiles, allListeners } from '../api/configuration.ts';
import type { Listener, VirtualFile } from '../api/configuration.ts';
import { directionOf, SetUp } from '../api/set-up.ts';
import type { Made } from '../api/set-up.ts';
import { useAction } from '../parts/action.tsx';
import { FailureNote } from '../parts/failure-note.tsx';
import { useUnsaved } from '../parts/leaving.tsx';
import { portsOf } from '../parts/listener-state.tsx';
import { Card, Loading, Page } from '../parts/page.tsx';
import { newPassword } from '../parts/password.ts';
import { SetUpResult } from '../parts/set-up-result.tsx';
import { TlsFields } from '../parts/set-up-tls.tsx';
import type { TlsWish } from '../parts/set-up-tls.tsx';
import { words as configuration } from '../texts/configuration.ts';

interface FormProps {
  readonly known: {
    readonly files: readonly VirtualFile[];
    readonly listeners: readonly Listener[];
    /** Those that have not ended. */
    readonly keystores: readonly string[];
  };
  readonly made: (made: Made) => void;
}

const NEW = '';

/** `NODE1`, or the next number that no listener has. */
const freeName = (listeners: readonly Listener[]): string => {
  let next = 1;
  while (listeners.some(({ serverId }) => serverId === `NODE${next}`)) next += 1;
  return `NODE${next}`;
};

const SetUpForm = ({ known, made }: FormProps) => {
  const { setUp, form, fields, values } = configuration.value;
  const running = known.listeners.find(({ status }) => status === 'RUNNING') ?? known.listeners[0];
  const [partnerId, setPartnerId] = useState('');
  const [name, setName] = useState('');
  const [password, setPassword] = useState(newPassword);
  const [writes, setWrites] = useState(true);
  const [reads, setReads] = useState(false);
  const [fileId, setFileId] = useState(NEW);
  const [newFile, setNewFile] = useState('');
  const [listenerId, setListenerId] = useState(running?.serverId ?? NEW);
  const [newListener, setNewListener] = useState(() => freeName(known.listeners));
  const [ownPort, setPort] = useState<string>();
  const [withTls, setWithTls] = useState(running?.port === null);
  const [host, setHost] = useState(location.hostname);
  const [tls, setTls] = useState<TlsWish>({ keystore: known.keystores[0] ?? NEW, proof: 'password', own: '' });
  const action = useAction();
  const making = useRef(new SetUp());
  useUnsaved(partnerId !== '' && !action.isRunning);
  const listener = known.listeners.find(({ serverId }) => serverId === listenerId);
  const mayTls = listener === undefined || listener.sslEnabled;
  const isTls = mayTls && withTls;
  const isNeeded = listener?.sslClientAuth === 'NEED';
  const proof = isNeeded && tls.proof === 'password' ? 'issued' : tls.proof;
  const port = ownPort ?? (isTls ? '5001' : '6502');
  const operations = [...(reads ? (['READ'] as const) : []), ...(writes ? (['WRITE'] as const) : [])];
  const make = async (): Promise<void> => {
    const file = known.files.find((one) => one.fileId === fileId);
    const wish = { partnerId, name, password, operations, host, file, newFile, listener, newListener, withTls };
    made(await making.current.make({ ...wish, ...tls, proof, port: Number(port) }));
  };

  const text = (label: string, value: string, change: (text: string) => void, more: object = {}) => (
    <label class="field">
      <span>{label}</span>
      <input
        autocomplete="off"
        spellcheck={false}
        value={value}
        onInput={(event) => change(event.currentTarget.value)}
        {...more}
      />
    </label>
  );
  const check = (label: string, value: boolean, change: (isOn: boolean) => void) => (
    <label class="check">
      <input type="checkbox" checked={value} onChange={(event) => change(event.currentTarget.checked)} />
      {label}
    </label>
  );
  const fits = known.files.filter(({ direction }) => direction === 'BOTH' || direction === directionOf(operations));
  return (
    <form
      class="stack form"
      aria-label={setUp.title}
      onSubmit={(event) => {
        event.preventDefault();
        action.run(make);
      }}
    >
      <div class="fields">
        {text(fields.partner.partnerId.label, partnerId, setPartnerId, {
          required: true,
          maxLength: 24,
          autofocus: true,
        })}
        {text(fields.partner.name.label, name, setName, { maxLength: 200 })}
        <div class="field" role="group" aria-label={fields.partner.allowedOperations.label}>
          <span>{fields.partner.allowedOperations.label}</span>
          {check(values.allowedOperations.WRITE, writes, setWrites)}
          {check(values.allowedOperations.READ, reads, setReads)}
        </div>
        <label class="field">
          <span>{setUp.file}</span>
          <select value={fileId} onChange={(event) => setFileId(event.currentTarget.value)}>
            <option value={NEW}>{setUp.newFile}</option>
            {fits.map((one) => (
              <option key={one.fileId} value={one.fileId} selected={one.fileId === fileId}>
                {one.fileId}
              </option>
            ))}
          </select>
        </label>
        {fileId === NEW &&
          text(fields.file.fileId.label, newFile, setNewFile, { maxLength: 76, placeholder: partnerId })}
        <label class="field">
          <span>{setUp.listener}</span>
          <select value={listenerId} onChange={(event) => setListenerId(event.currentTarget.value)}>
            {known.listeners.map((one) => (
              <option key={one.serverId} value={one.serverId} selected={one.serverId === listenerId}>
                {one.serverId} ({portsOf(one)})
              </option>
            ))}
            <option value={NEW} selected={listenerId === NEW}>
              {setUp.newListener}
            </option>
          </select>
        </label>
        {listenerId === NEW && (
          <>
            {text(fields.listener.serverId.label, newListener, setNewListener, { required: true, maxLength: 24 })}
            {text(fields.listener.port.label, port, setPort, { type: 'number', min: 1, max: 65_535, required: true })}
          </>
        )}
        {mayTls && (
          <div class="field">
            <span>TLS</span>
            {check(setUp.onlyTls, withTls, setWithTls)}
          </div>
        )}
        {isTls && (
          <TlsFields
            {...{ ...tls, proof, isNeeded }}
            keystores={listener === undefined ? known.keystores : undefined}
            change={(change) => setTls((last) => ({ ...last, ...change }))}
          />
        )}
        {text(setUp.host, host, setHost, { required: true, maxLength: 255 })}
        <div class="field">
          <label for="set-up-password">{fields.partner.password.label}</label>
          <div class="together row">
            <input
              id="set-up-password"
              class="mono short"
              autocomplete="off"
              spellcheck={false}
              required
              pattern="[ -~]{1,8}"
              title={fields.partner.password.form}
              value={password}
              onInput={(event) => setPassword(event.currentTarget.value)}
            />
            <button type="button" class="button" onClick={() => setPassword(newPassword())}>
              {setUp.another}
            </button>
          </div>
          <span class="help">{setUp.once}</span>
        </div>
      </div>
      {operations.length === 0 && <p class="fault">{form.faults.required}</p>}
      <FailureNote failure={action.failure} />
      <div class="row">
        <button class="button main" disabled={action.isRunning || operations.length === 0}>
          {setUp.title}
        </button>
      </div>
    </form>
  );
};

/** A partner with all that it takes, from one page; then whether it gets through, and what to tell it. */
export const SetUpPartner = () => {
  const { setUp, partners: words } = configuration.value;
  const [made, setMade] = useState<Made>();
  const { value, failure, ask } = useAnswer('set up', async (signal) => {
    const [some, all, stores] = await Promise.all([allFiles(signal), allListeners(signal), keystores(signal)]);
    const good = stores.filter(({ certificates }) => {
      const end = firstEnd(certificates);
      return end !== undefined && daysLeft(end) >= 0;
    });
    return { files: some, listeners: all, keystores: good.map(({ name }) => name) };
  });
  if (made !== undefined) {
    return (
      <Page title={setUp.title}>
        <SetUpResult of={made} />
      </Page>
    );
  }
  return (
    <Page title={setUp.title}>
      <p>
        <a href="/partners">{words.back}</a>
      </p>
      <FailureNote failure={failure} again={ask} isStale={value !== undefined} />
      <Card title={setUp.what}>
        <p class="quiet">{setUp.hint}</p>
        {value === undefined ? failure === undefined && <Loading /> : <SetUpForm known={value} made={setMade} />}
      </Card>
    </Page>
  );
};
