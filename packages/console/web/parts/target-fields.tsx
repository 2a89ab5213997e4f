import { useId, useState } from 'preact/hooks';

import { useAnswer } from '../api/answer.ts';
import { usedFiles } from '../api/used-files.ts';
import { sendWords } from '../texts/send.ts';
import type { Peers } from './peers.ts';

/** What the address of the page says already, if it does. */
export interface Preset {
  /** Name of the remote server. */
  readonly server: string | undefined;
  readonly file: string | undefined;
}

interface Props {
  readonly peers: Peers;
  readonly preset: Preset;
  readonly direction: 'SEND' | 'RECEIVE';
}

/** To or from which remote server, and by which virtual file: fields `server` (its name) and `virtualFile` of the form around them. */
export const TargetFields = ({ peers, preset, direction }: Props) => {
  const send = sendWords.value;
  const [only] = peers.options;
  const named = peers.options.some(([, word]) => word === preset.server) ? preset.server : undefined;
  const [name, setName] = useState(named ?? (peers.options.length === 1 ? (only?.[1] ?? '') : ''));
  const id = peers.options.find(([, word]) => word === name)?.[0] ?? '';
  const { value: files = [] } = useAnswer(`files ${direction} ${id}`, (signal) => usedFiles(id, direction, signal));
  const list = useId();
  return (
    <>
      <label class="field">
        <span>{send.server}</span>
        <select name="server" required value={name} onChange={(event) => setName(event.currentTarget.value)}>
          <option value="">{send.serverHint}</option>
          {peers.options.map(([value, word]) => (
            <option key={value} value={word}>
              {word}
            </option>
          ))}
        </select>
      </label>
      <label class="field">
        <span>{send.virtualFile}</span>
        <input
          name="virtualFile"
          required
          maxLength={76}
          list={list}
          autocomplete="off"
          spellcheck={false}
          defaultValue={preset.file ?? ''}
        />
        <datalist id={list}>
          {files.map((file) => (
            <option key={file} value={file} />
          ))}
        </datalist>
        <small class="quiet">{send.virtualFileHint}</small>
      </label>
    </>
  );
};

/** What a field of the form has; undefined: it was left empty. */
export const given = (form: FormData, name: string): string | undefined => {
  const value = form.get(name);
  return typeof value === 'string' && value !== '' ? value : undefined;
};

export const PriorityField = () => {
  const send = sendWords.value;
  return (
    <label class="field">
      <span>{send.priority}</span>
      <select name="priority">
        {send.priorities.map((word, value) => (
          <option key={value} value={value} selected={value === 1}>
            {word}
          </option>
        ))}
      </select>
    </label>
  );
};
