import { receiveFile, sendMessage } from '../api/jobs.ts';
import { sendWords } from '../texts/send.ts';
import type { Peers } from './peers.ts';
import { given, PriorityField, TargetFields } from './target-fields.tsx';
import type { Preset } from './target-fields.tsx';

interface Props {
  readonly peers: Peers;
  readonly preset: Preset;
}

/** A file that a partner has for this node. */
export const ReceiveForm = ({ peers, preset }: Props) => {
  const send = sendWords.value;
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const remoteFilename = given(form, 'remoteFilename');
    const localName = given(form, 'localName');
    receiveFile({
      server: given(form, 'server') ?? '',
      virtualFile: given(form, 'virtualFile') ?? '',
      priority: Number(given(form, 'priority') ?? 1),
      ...(remoteFilename === undefined ? {} : { remoteFilename }),
      ...(localName === undefined ? {} : { localName }),
    });
  };
  return (
    <form class="stack" onSubmit={submit} aria-label={send.way.receive}>
      <div class="grid">
        <TargetFields key={peers.options.length} peers={peers} preset={preset} direction="RECEIVE" />
        <label class="field">
          <span>{send.wanted}</span>
          <input name="remoteFilename" maxLength={80} spellcheck={false} />
          <small class="quiet">{send.wantedHint}</small>
        </label>
        <label class="field">
          <span>{send.localName}</span>
          <input name="localName" spellcheck={false} />
          <small class="quiet">{send.localHint}</small>
        </label>
        <PriorityField />
      </div>
      <div class="row">
        <button class="button main">{send.receive}</button>
      </div>
    </form>
  );
};

/** A PeSIT message: no file, a text that the partner acknowledges, and may answer. */
export const MessageForm = ({ peers, preset }: Props) => {
  const send = sendWords.value;
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const element = event.currentTarget as HTMLFormElement;
    const form = new FormData(element);
    sendMessage({
      server: given(form, 'server') ?? '',
      virtualFile: given(form, 'virtualFile') ?? '',
      message: given(form, 'message') ?? '',
    });
    const text = element.elements.namedItem('message');
    if (text instanceof HTMLTextAreaElement) text.value = '';
  };
  return (
    <form class="stack" onSubmit={submit} aria-label={send.way.message}>
      <div class="grid">
        <TargetFields key={peers.options.length} peers={peers} preset={preset} direction="SEND" />
      </div>
      <label class="field">
        <span>{send.message}</span>
        <textarea name="message" rows={4} required maxLength={65_536} />
      </label>
      <div class="row">
        <button class="button main">{send.sendMessage}</button>
      </div>
    </form>
  );
};
