import { useRef, useState } from 'preact/hooks';

import { issue, pkcs12Bytes } from '../api/certificates.ts';
import type { KeyType, NewIssued } from '../api/certificates.ts';
import { save } from '../api/save.ts';
import { certificatesWords } from '../texts/certificates.ts';
import { texts } from '../texts/index.ts';
import { useAction } from './action.tsx';
import { DialogEnd } from './dialog-end.tsx';
import { Dialog } from './dialog.tsx';
import { Facts } from './page.tsx';
import { given } from './target-fields.tsx';

const KEY_TYPES = ['EC', 'RSA'] as const satisfies readonly KeyType[];

/** In the place of a type: the key is that of a request, and somebody else has it. */
const CSR = 'CSR';

/** Which key is made; field `keyType` of the form around it. */
export const KeyTypeField = ({ change }: { readonly change?: (chosen: string) => void }) => {
  const certificates = certificatesWords.value;
  return (
    <label class="field">
      <span>{certificates.key}</span>
      <select name="keyType" onChange={(event) => change?.(event.currentTarget.value)}>
        {KEY_TYPES.map((one) => (
          <option key={one} value={one}>
            {certificates.keys[one]}
          </option>
        ))}
        {change !== undefined && <option value={CSR}>{certificates.keys[CSR]}</option>}
      </select>
    </label>
  );
};

export const keyTypeIn = (form: FormData): KeyType => (given(form, 'keyType') === 'RSA' ? 'RSA' : 'EC');

interface HandoverProps {
  readonly made: NewIssued;
  /** PEM of the CA: whoever has the certificate needs it, too. */
  readonly ca: string;
  readonly close: () => void;
}

/** What was issued: a password is here, and never again. */
export const Handover = ({ made, ca, close }: HandoverProps) => {
  const { common } = texts.value;
  const certificates = certificatesWords.value;
  const { pkcs12, password, name, keystore, certificate } = made;
  const hasFile = pkcs12 !== undefined;
  return (
    <Dialog title={certificates.issuedTo(name)} close={close}>
      {keystore !== null && <p>{certificates.inKeystore(keystore)}</p>}
      {keystore === null && !hasFile && <p>{certificates.signed}</p>}
      {password !== undefined && (
        <>
          <p class="note warn">{certificates.once}</p>
          <Facts of={[[certificates.password, <code key="password">{password}</code>]]} />
        </>
      )}
      <div class="row">
        {hasFile && (
          <button
            type="button"
            class="button main"
            onClick={() => save(pkcs12Bytes(made), `${name}.p12`, 'application/x-pkcs12')}
          >
            {certificates.savePkcs12}
          </button>
        )}
        <button type="button" class="button" onClick={() => save(certificate, `${name}.pem`)}>
          {certificates.savePem}
        </button>
        <button type="button" class="button" onClick={() => save(ca, 'ca.pem')}>
          {certificates.saveCa}
        </button>
        <button type="button" class="button" onClick={close}>
          {common.close}
        </button>
      </div>
    </Dialog>
  );
};

/** A certificate request in PEM, pasted or from a file; field `csr` of the form around it. */
const RequestField = () => {
  const certificates = certificatesWords.value;
  const text = useRef<HTMLTextAreaElement>(null);
  const read = (file: File | undefined): void => {
    void file?.text().then((pem) => {
      if (text.current !== null) text.current.value = pem;
    });
  };
  return (
    <div class="field">
      <label for="issue-csr">{certificates.csr}</label>
      <textarea
        ref={text}
        id="issue-csr"
        class="mono"
        name="csr"
        rows={4}
        required
        maxLength={100_000}
        spellcheck={false}
        placeholder="-----BEGIN CERTIFICATE REQUEST-----"
        aria-describedby="issue-csr-help"
      />
      <label class="stack small">
        <span>{certificates.csrFile}</span>
        <input type="file" accept=".csr,.pem,.req" onChange={(event) => read(event.currentTarget.files?.[0])} />
      </label>
      <small class="quiet" id="issue-csr-help">
        {certificates.csrHint}
      </small>
    </div>
  );
};

const KINDS = ['partner', 'server'] as const;

interface IssueProps {
  readonly close: () => void;
  readonly done: (made: NewIssued) => void;
}

export const IssueDialog = ({ close, done }: IssueProps) => {
  const certificates = certificatesWords.value;
  const [isRequest, setRequest] = useState(false);
  const action = useAction();
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const csr = given(form, 'csr');
    action.run(async () => {
      const made = await issue({
        name: given(form, 'name') ?? '',
        commonName: given(form, 'commonName') ?? '',
        sans: (given(form, 'sans') ?? '').split(/[\s,]+/).filter((one) => one !== ''),
        ttlDays: Number(given(form, 'days')),
        kind: given(form, 'kind') === 'server' ? 'server' : 'partner',
        keyType: keyTypeIn(form),
        ...(csr === undefined ? {} : { csr }),
      });
      done(made);
    });
  };
  const kinds = isRequest ? certificates.requestKinds : certificates.kinds;
  return (
    <Dialog title={certificates.issue} close={close}>
      <form class="stack" onSubmit={submit}>
        <KeyTypeField change={(chosen) => setRequest(chosen === CSR)} />
        {isRequest && <RequestField />}
        <label class="field">
          <span>{certificates.kind}</span>
          <select name="kind">
            {KINDS.map((one) => (
              <option key={one} value={one}>
                {kinds[one]}
              </option>
            ))}
          </select>
        </label>
        <div class="grid">
          <label class="field">
            <span>{certificates.name}</span>
            <input name="name" required maxLength={64} spellcheck={false} autocomplete="off" />
          </label>
          <label class="field">
            <span>{certificates.commonName}</span>
            <input name="commonName" required maxLength={64} spellcheck={false} autocomplete="off" />
          </label>
          <label class="field">
            <span>{certificates.sans}</span>
            <input name="sans" spellcheck={false} placeholder="pesit.acme.example" />
          </label>
          <label class="field">
            <span>{certificates.validDays}</span>
            <input name="days" type="number" min={1} max={3650} required defaultValue="365" />
          </label>
        </div>
        <DialogEnd action={action} word={certificates.issue} close={close} />
      </form>
    </Dialog>
  );
};
