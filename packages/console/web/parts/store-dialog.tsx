import { useState } from 'preact/hooks';

import { putStore } from '../api/certificates.ts';
import type { Kind } from '../api/certificates.ts';
import { certificatesWords } from '../texts/certificates.ts';
import { texts } from '../texts/index.ts';
import { useAction } from './action.tsx';
import { DialogEnd } from './dialog-end.tsx';
import { Dialog } from './dialog.tsx';

interface Props {
  readonly kind: Kind;
  /** In whose place it comes; undefined: a new one. */
  readonly old: string | undefined;
  readonly close: () => void;
  readonly done: () => void;
}

/** A file of PEM, or of a keystore PKCS#12, that goes to the service. */
export const StoreDialog = ({ kind, old, close, done }: Props) => {
  const { common } = texts.value;
  const certificates = certificatesWords.value;
  const [warnings, setWarnings] = useState<readonly string[]>();
  const action = useAction();
  const title = old === undefined ? certificates.add[kind] : certificates.replaceOf(old);
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const file = form.get('file');
    const name = form.get('name');
    const password = form.get('password');
    if (!(file instanceof File)) return;
    action.run(async () => {
      const told = await putStore(
        kind,
        {
          ...{ name: typeof name === 'string' ? name : (old ?? ''), file },
          password: typeof password === 'string' && password !== '' ? password : undefined,
        },
        old,
      );
      done();
      if (told.length === 0) close();
      else setWarnings(told);
    });
  };
  if (warnings !== undefined) {
    return (
      <Dialog title={title} close={close}>
        <p>{certificates.stored}</p>
        <ul class="note warn">
          {warnings.map((one) => (
            <li key={one}>{one}</li>
          ))}
        </ul>
        <div class="row">
          <button type="button" class="button main" onClick={close}>
            {common.close}
          </button>
        </div>
      </Dialog>
    );
  }
  return (
    <Dialog title={title} close={close}>
      <form class="stack" onSubmit={submit}>
        {old === undefined && (
          <label class="field">
            <span>{certificates.name}</span>
            <input name="name" required maxLength={64} spellcheck={false} autocomplete="off" />
          </label>
        )}
        <label class="field">
          <span>{certificates.file[kind]}</span>
          <input name="file" type="file" required />
          <small class="quiet">{certificates.fileHint[kind]}</small>
        </label>
        {kind === 'keystores' && (
          <label class="field">
            <span>{certificates.password}</span>
            <input name="password" type="password" autocomplete="off" maxLength={1024} />
            <small class="quiet">{certificates.passwordHint}</small>
          </label>
        )}
        <DialogEnd action={action} word={certificates.store} close={close} />
      </form>
    </Dialog>
  );
};
