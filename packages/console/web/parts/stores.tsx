import { useState } from 'preact/hooks';

import { deleteStore, firstEnd, rotate } from '../api/certificates.ts';
import type { Certificate, Keystore, Kind, Truststore } from '../api/certificates.ts';
import { save } from '../api/save.ts';
import { app, may } from '../api/session.ts';
import { colon, number } from '../texts/format.ts';
import { certificatesWords } from '../texts/certificates.ts';
import { texts } from '../texts/index.ts';
import { useAction } from './action.tsx';
import { CrlDialog } from './crl-dialog.tsx';
import { Dialog } from './dialog.tsx';
import { FailureNote } from './failure-note.tsx';
import { Card, Empty } from './page.tsx';
import { StoreDialog } from './store-dialog.tsx';
import { Validity } from './validity.tsx';

/** The most specific name of a subject: `CN=` of `CN=acme,O=Acme`. */
const shortName = (subject: string): string => /CN=((?:\\.|[^,+\\])+)/i.exec(subject)?.[1] ?? subject;

interface Row {
  readonly name: string;
  readonly certificates: readonly Certificate[];
  readonly usedBy: Keystore['usedBy'];
  readonly warnings: readonly string[];
  readonly isManaged: boolean;
  readonly crls: readonly Truststore['crlFetches'][number][];
}

export const rowsOfKeystores = (all: readonly Keystore[]): readonly Row[] =>
  all.map(({ name, certificates, usedBy, warnings, managed }) => ({
    ...{ name, certificates, usedBy, warnings, isManaged: managed, crls: [] },
  }));

export const rowsOfTruststores = (all: readonly Truststore[]): readonly Row[] =>
  all.map(({ name, certificates, usedBy, warnings, crlFetches }) => ({
    ...{ name, usedBy, warnings, isManaged: false, crls: crlFetches },
    certificates: typeof certificates === 'string' ? [] : certificates,
  }));

const Chain = ({ of }: { readonly of: readonly Certificate[] }) => {
  const certificates = certificatesWords.value;
  return (
    <details>
      <summary>{of.length === 1 ? shortName(of[0]?.subject ?? '') : certificates.several(number(of.length))}</summary>
      <ul class="stack">
        {of.map((one) => (
          <li key={one.fingerprint} class="stack small">
            <strong>{one.subject}</strong>
            <Validity until={one.notAfter} />
            <span class="quiet">
              {certificates.issuer}
              {colon.value} {one.issuer}
            </span>
            {one.san.length > 0 && <span>{one.san.join(', ')}</span>}
            <span class="quiet">
              {one.keyType} {number(one.keySize)} · {certificates.serial} <code>{one.serial}</code>
            </span>
            <code>{one.fingerprint}</code>
          </li>
        ))}
      </ul>
    </details>
  );
};

interface StoresProps {
  readonly kind: Kind;
  readonly of: readonly Row[];
  readonly changed: () => void;
}

/** Keystores, or truststores: what is in them, until when, what uses them; an admin changes them. */
export const Stores = ({ kind, of, changed }: StoresProps) => {
  const { common } = texts.value;
  const certificates = certificatesWords.value;
  const [opened, setOpened] = useState<{ readonly old: string | undefined }>();
  const [doomed, setDoomed] = useState<string>();
  const [listed, setListed] = useState<Row>();
  const action = useAction();
  const isAdmin = may('admin');
  const act = (what: () => Promise<void>): void => action.run(() => what().then(changed));
  return (
    <Card
      title={certificates[kind]}
      actions={
        isAdmin && (
          <button type="button" class="button" onClick={() => setOpened({ old: undefined })}>
            {certificates.add[kind]}
          </button>
        )
      }
    >
      <FailureNote failure={action.failure} />
      {of.length === 0 ? (
        <Empty title={certificates.noStore[kind]}>
          <span>{certificates.noStoreHint[kind]}</span>
        </Empty>
      ) : (
        <ul class="running">
          {of.map((row) => (
            <li key={row.name}>
              <div class="row spread">
                <span class="row">
                  <strong>{row.name}</strong>
                  <Validity until={firstEnd(row.certificates)} />
                  {row.isManaged && <span class="quiet">{certificates.managed}</span>}
                </span>
                <span class="row">
                  {isAdmin && row.isManaged && app.value === 'server' && (
                    <button
                      type="button"
                      class="button"
                      title={certificates.rotateHint}
                      aria-label={certificates.rotateOf(row.name)}
                      disabled={action.isRunning}
                      onClick={() => act(() => rotate(row.name))}
                    >
                      {certificates.rotate}
                    </button>
                  )}
                  <button
                    type="button"
                    class="button"
                    aria-label={certificates.pemOf(row.name)}
                    onClick={() =>
                      save(row.certificates.map(({ pem }) => `${pem.trim()}\n`).join(''), `${row.name}.pem`)
                    }
                  >
                    PEM
                  </button>
                  {isAdmin && (
                    <>
                      {kind === 'truststores' && (
                        <button
                          type="button"
                          class="button"
                          aria-label={certificates.crlUrlsOf(row.name)}
                          onClick={() => setListed(row)}
                        >
                          CRL
                        </button>
                      )}
                      <button
                        type="button"
                        class="button"
                        aria-label={certificates.replaceOf(row.name)}
                        onClick={() => setOpened({ old: row.name })}
                      >
                        {certificates.replace}
                      </button>
                      <button
                        type="button"
                        class="button danger"
                        aria-label={certificates.deleteOf(row.name)}
                        onClick={() => setDoomed(row.name)}
                      >
                        {certificates.delete}
                      </button>
                    </>
                  )}
                </span>
              </div>
              <Chain of={row.certificates} />
              <span class="quiet">
                {row.usedBy.length === 0
                  ? certificates.unused
                  : `${certificates.usedBy}${colon.value} ${row.usedBy.map(({ what, name }) => `${what} ${name}`).join(', ')}`}
              </span>
              {row.crls.map(({ url, error, nextUpdate }) => (
                <span key={url} class={error === null ? 'quiet' : 'note bad'}>
                  CRL {url} {error ?? (nextUpdate === null ? '' : certificates.nextUpdate(nextUpdate))}
                </span>
              ))}
              {row.warnings.map((warning) => (
                <p key={warning} class="note warn">
                  {warning}
                </p>
              ))}
            </li>
          ))}
        </ul>
      )}
      {opened !== undefined && (
        <StoreDialog kind={kind} old={opened.old} close={() => setOpened(undefined)} done={changed} />
      )}
      {listed !== undefined && (
        <CrlDialog
          name={listed.name}
          urls={listed.crls.map(({ url }) => url)}
          close={() => setListed(undefined)}
          done={() => {
            setListed(undefined);
            changed();
          }}
        />
      )}
      {doomed !== undefined && (
        <Dialog title={certificates.deleteOf(doomed)} close={() => setDoomed(undefined)}>
          <p>{certificates.deleteAsk}</p>
          <div class="row">
            <button
              type="button"
              class="button danger"
              onClick={() => {
                setDoomed(undefined);
                act(() => deleteStore(kind, doomed));
              }}
            >
              {certificates.delete}
            </button>
            <button type="button" class="button" onClick={() => setDoomed(undefined)}>
              {common.cancel}
            </button>
          </div>
        </Dialog>
      )}
    </Card>
  );
};
