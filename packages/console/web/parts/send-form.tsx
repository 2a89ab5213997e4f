import { useRef, useState } from 'preact/hooks';

import { sendFile } from '../api/jobs.ts';
import { bytes, number } from '../texts/format.ts';
import { sendWords } from '../texts/send.ts';
import type { Peers } from './peers.ts';
import { given, PriorityField, TargetFields } from './target-fields.tsx';
import type { Preset } from './target-fields.tsx';

/** PI 37 is plain ASCII: accents go, anything else that it cannot carry is a `_`. */
const plainName = (name: string): string =>
  name
    .normalize('NFD')
    .replace(/\p{M}/gu, '')
    .replace(/[^\x20-\x7e]/g, '_')
    .slice(-80);

interface Chosen {
  readonly id: number;
  readonly file: File;
  readonly name: string;
}

interface DropProps {
  readonly take: (files: readonly File[]) => void;
}

/** A place to drop files on, with a button that chooses them. */
const DropZone = ({ take }: DropProps) => {
  const send = sendWords.value;
  const [isOver, setOver] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  return (
    <div
      class={isOver ? 'drop over' : 'drop'}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        take([...(event.dataTransfer?.files ?? [])]);
      }}
    >
      <strong>{send.drop}</strong>
      <span class="quiet">{send.or}</span>
      <button type="button" class="button" onClick={() => input.current?.click()}>
        {send.choose}
      </button>
      <input
        ref={input}
        type="file"
        multiple
        hidden
        aria-label={send.choose}
        onChange={(event) => {
          take([...(event.currentTarget.files ?? [])]);
          // The same file can be chosen again.
          event.currentTarget.value = '';
        }}
      />
    </div>
  );
};

/** Files, and where they go: each is a transfer of its own. */
export const SendForm = ({ peers, preset }: { readonly peers: Peers; readonly preset: Preset }) => {
  const send = sendWords.value;
  const [chosen, setChosen] = useState<readonly Chosen[]>([]);
  const count = useRef(0);
  const take = (files: readonly File[]): void =>
    setChosen((last) => [...last, ...files.map((file) => ({ id: count.current++, file, name: plainName(file.name) }))]);
  const rename = (id: number, name: string): void =>
    setChosen((last) => last.map((one) => (one.id === id ? { ...one, name } : one)));
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const fields = {
      server: given(form, 'server'),
      virtualFile: given(form, 'virtualFile'),
      label: given(form, 'label'),
      priority: Number(given(form, 'priority') ?? 1),
    };
    for (const { file, name } of chosen) sendFile(file, { ...fields, remoteFilename: name });
    setChosen([]);
  };
  return (
    <form class="stack" onSubmit={submit} aria-label={send.way.file}>
      <DropZone take={take} />
      {chosen.length > 0 && (
        <ul class="chosen" aria-label={send.chosen(number(chosen.length))}>
          {chosen.map(({ id, file, name }) => (
            <li key={id}>
              <span class="file">
                {file.name} <span class="quiet">{bytes(file.size)}</span>
              </span>
              <input
                aria-label={send.nameOf(file.name)}
                title={send.nameRule}
                placeholder={send.nameThere}
                required
                maxLength={80}
                pattern="[ -~]*"
                spellcheck={false}
                value={name}
                onInput={(event) => rename(id, event.currentTarget.value)}
              />
              <button
                type="button"
                class="button plain"
                aria-label={send.leave(file.name)}
                onClick={() => setChosen((last) => last.filter((one) => one.id !== id))}
              >
                ×
              </button>
            </li>
          ))}
        </ul>
      )}
      <div class="grid">
        <TargetFields key={peers.options.length} peers={peers} preset={preset} direction="SEND" />
        <label class="field">
          <span>{send.label}</span>
          <input name="label" maxLength={80} pattern="[ -~]*" title={send.nameRule} />
          <small class="quiet">{send.labelHint}</small>
        </label>
        <PriorityField />
      </div>
      <div class="row">
        <button class="button main" disabled={chosen.length === 0}>
          {send.submit(chosen.length)}
        </button>
        {chosen.length > 0 && <span class="quiet">{send.chosen(number(chosen.length))}</span>}
      </div>
    </form>
  );
};
