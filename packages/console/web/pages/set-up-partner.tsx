import { useRef, useState } from 'preact/hooks';

import { useAnswer } from '../api/answer.ts';
import { allFiles, allListeners, files, listeners, partners } from '../api/configuration.ts';
import type { Listener, VirtualFile } from '../api/configuration.ts';
import { useAction } from '../parts/action.tsx';
import { FailureNote } from '../parts/failure-note.tsx';
import { FirstContact } from '../parts/first-contact.tsx';
import { useUnsaved } from '../parts/leaving.tsx';
import { portsOf } from '../parts/listener-state.tsx';
import { Card, Loading, Page } from '../parts/page.tsx';
import { newPassword } from '../parts/password.ts';
import { Sheet } from '../parts/sheet.tsx';
import { words as configuration } from '../texts/configuration.ts';
import { bytes, number } from '../texts/format.ts';

interface Made {
  readonly partnerId: string;
  readonly password: string;
  readonly host: string;
  readonly withTls: boolean;
  readonly operations: readonly ('READ' | 'WRITE')[];
  readonly file: VirtualFile;
  readonly listener: Listener;
}

const directionOf = (operations: Made['operations']): VirtualFile['direction'] =>
  operations.length === 2 ? 'BOTH' : operations[0] === 'READ' ? 'SEND' : 'RECEIVE';

/** What is made, and what the partner must know of it. */
const Result = ({ of }: { readonly of: Made }) => {
  const { setUp, values } = configuration.value;
  const { partnerId, password, host, withTls, operations, file, listener } = of;
  const port = withTls ? (listener.tlsPort ?? 5001) : (listener.port ?? listener.tlsPort ?? 5001);
  const { rows } = setUp;
  const question = {
    ...{
      name: `${listener.serverId}-${partnerId}`.toLowerCase(),
      host,
      port: String(port),
      serverId: listener.serverId,
    },
    ...{ clientId: partnerId, ...(withTls ? { tls: '1' } : {}) },
  };
  return (
    <>
      <p class="note good no-print" role="status">
        {setUp.made(partnerId)}
      </p>
      <div class="columns">
        <div class="no-print">
          <FirstContact partnerId={partnerId} listenerId={listener.serverId} question={question} />
        </div>
        <Sheet
          title={setUp.sheetTitle(partnerId)}
          rows={[
            [rows.host, host],
            [rows.port, String(port)],
            [rows.tls, withTls ? rows.yes : rows.no],
            [rows.server, listener.serverId],
            [rows.partner, partnerId],
            [rows.password, password],
            [rows.file, file.fileId],
            [rows.may, operations.map((one) => values.allowedOperations[one]).join(', ')],
            [
              rows.format,
              file.recordFormat === null ? rows.any : values.recordFormat[file.recordFormat === 0 ? 0 : 128],
            ],
            [rows.length, file.recordLength === null ? rows.any : number(file.recordLength)],
            [rows.size, file.maxFileSize === null ? rows.any : bytes(file.maxFileSize)],
            [rows.protocol, rows.version],
          ]}
        />
      </div>
      <p class="row no-print">
        <a href={`/partners/${encodeURIComponent(partnerId)}`}>{setUp.toPartner(partnerId)}</a>
        <a href="/partners">{configuration.value.partners.back}</a>
      </p>
    </>
  );
};

interface FormProps {
  readonly known: { readonly files: readonly VirtualFile[]; readonly listeners: readonly Listener[] };
  readonly made: (made: Made) => void;
}

const NEW = '';

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
  const [newListener, setNewListener] = useState('NODE1');
  const [port, setPort] = useState('6502');
  const [withTls, setWithTls] = useState(running?.port === null);
  const [host, setHost] = useState(location.hostname);
  const action = useAction();
  // What was made already is not made again when a later step is refused.
  const done = useRef<{ file?: VirtualFile; listener?: Listener }>({});
  useUnsaved(partnerId !== '' && !action.isRunning);
  const listener = known.listeners.find(({ serverId }) => serverId === listenerId);
  const mayTls = listener === undefined || listener.sslEnabled;
  const operations = [...(reads ? (['READ'] as const) : []), ...(writes ? (['WRITE'] as const) : [])];
  const fileName = newFile === '' ? partnerId : newFile;

  const listenerToUse = async (): Promise<Listener> => {
    if (listener !== undefined) return listener;
    const { listener: before } = done.current;
    if (before?.serverId === newListener) return before;
    const ports = withTls ? { port: null, tlsPort: Number(port), sslEnabled: true } : { port: Number(port) };
    return (done.current.listener = await listeners.create({ serverId: newListener, ...ports }));
  };
  const fileToUse = async (): Promise<VirtualFile> => {
    const file = known.files.find((one) => one.fileId === fileId);
    if (file !== undefined) {
      const { allowedPartners } = file;
      if (allowedPartners === null || allowedPartners.includes(partnerId)) return file;
      return files.change(file.fileId, { allowedPartners: [...allowedPartners, partnerId] });
    }
    const { file: before } = done.current;
    if (before?.fileId === fileName) return before;
    return (done.current.file = await files.create({
      ...{ fileId: fileName, direction: directionOf(operations), allowedPartners: [partnerId] },
    }));
  };
  const make = async (): Promise<void> => {
    const on = await listenerToUse();
    const file = await fileToUse();
    const isTls = withTls && on.sslEnabled;
    await partners.create({
      ...{ partnerId, password, allowedOperations: operations, tlsRequired: isTls },
      ...{ allowedFiles: [file.fileId], allowedListeners: [on.serverId] },
      ...(name === '' ? {} : { name }),
    });
    made({ partnerId, password, host, withTls: isTls, operations, file, listener: on });
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
            {check(setUp.tls, withTls, setWithTls)}
          </div>
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
    const [some, all] = await Promise.all([allFiles(signal), allListeners(signal)]);
    return { files: some, listeners: all };
  });
  if (made !== undefined) {
    return (
      <Page title={setUp.title}>
        <Result of={made} />
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
