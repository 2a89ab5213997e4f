import { useState } from 'preact/hooks';

import { createAuthority, REASONS, revoke } from '../api/certificates.ts';
import type { Authority, Issued, IssuedOnes, NewIssued, Reason } from '../api/certificates.ts';
import { download } from '../api/download.ts';
import { save } from '../api/save.ts';
import { may } from '../api/session.ts';
import { dateTime, number } from '../texts/format.ts';
import { certificatesWords } from '../texts/certificates.ts';
import { texts } from '../texts/index.ts';
import { useAction } from './action.tsx';
import { Dialog } from './dialog.tsx';
import { FailureNote } from './failure-note.tsx';
import { Handover, IssueDialog, keyTypeIn, KeyTypeField } from './issue-dialog.tsx';
import { Card, Empty, Facts } from './page.tsx';
import { Pill } from './pills.tsx';
import { given } from './target-fields.tsx';
import { Validity } from './validity.tsx';

/** Makes the local CA, where there is none. */
const MakeAuthority = ({ changed }: { readonly changed: () => void }) => {
  const certificates = certificatesWords.value;
  const action = useAction();
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const organization = given(form, 'organization');
    action.run(() =>
      createAuthority({
        commonName: given(form, 'commonName') ?? '',
        validityDays: Number(given(form, 'days')),
        keyType: keyTypeIn(form),
        ...(organization === undefined ? {} : { organization }),
      }).then(changed),
    );
  };
  return (
    <form class="stack" onSubmit={submit} aria-label={certificates.makeAuthority}>
      <div class="grid">
        <label class="field">
          <span>{certificates.commonName}</span>
          <input name="commonName" required maxLength={64} placeholder="Acme PeSIT CA" />
        </label>
        <label class="field">
          <span>{certificates.organization}</span>
          <input name="organization" maxLength={64} />
        </label>
        <label class="field">
          <span>{certificates.validDays}</span>
          <input name="days" type="number" min={1} max={7300} required defaultValue="3650" />
        </label>
        <KeyTypeField />
      </div>
      <FailureNote failure={action.failure} />
      <div class="row">
        <button class="button main" disabled={action.isRunning}>
          {certificates.makeAuthority}
        </button>
      </div>
    </form>
  );
};

interface RevokeProps {
  readonly of: Issued;
  readonly close: () => void;
  readonly done: () => void;
}

const RevokeDialog = ({ of, close, done }: RevokeProps) => {
  const { common } = texts.value;
  const certificates = certificatesWords.value;
  const [reason, setReason] = useState<Reason>('unspecified');
  const action = useAction();
  return (
    <Dialog title={certificates.revokeOf(of.name)} close={close}>
      <p>{certificates.revokeAsk}</p>
      <label class="field">
        <span>{certificates.reason}</span>
        <select value={reason} onChange={(event) => setReason(event.currentTarget.value as Reason)}>
          {REASONS.map((one) => (
            <option key={one} value={one}>
              {certificates.reasons[one]}
            </option>
          ))}
        </select>
      </label>
      <FailureNote failure={action.failure} />
      <div class="row">
        <button
          type="button"
          class="button danger"
          disabled={action.isRunning}
          onClick={() => action.run(() => revoke(of.serial, reason).then(done))}
        >
          {certificates.revoke}
        </button>
        <button type="button" class="button" onClick={close}>
          {common.cancel}
        </button>
      </div>
    </Dialog>
  );
};

const stateMood = (state: Issued['state']) => (state === 'VALID' ? 'good' : state === 'REVOKED' ? 'bad' : '');

interface AuthorityProps {
  readonly of: Authority | null;
  readonly ones: IssuedOnes;
  readonly changed: () => void;
}

/** The CA of this node: what it has issued, and to whom; an admin makes it, issues and revokes. */
export const AuthorityCard = ({ of, ones, changed }: AuthorityProps) => {
  const certificates = certificatesWords.value;
  const [isIssuing, setIssuing] = useState(false);
  const [made, setMade] = useState<NewIssued>();
  const [doomed, setDoomed] = useState<Issued>();
  const fetched = useAction();
  const isAdmin = may('admin');
  if (of === null) {
    return (
      <Card title={certificates.authority}>
        <Empty title={certificates.noAuthority}>
          <span>{certificates.noAuthorityHint}</span>
        </Empty>
        {isAdmin && <MakeAuthority changed={changed} />}
      </Card>
    );
  }
  return (
    <Card
      title={certificates.authority}
      actions={
        <span class="row">
          <button type="button" class="button" onClick={() => save(of.certificate, 'ca.pem')}>
            {certificates.saveCa}
          </button>
          <button
            type="button"
            class="button"
            disabled={fetched.isRunning}
            onClick={() => fetched.run(() => download('/api/v1/certificates/crl', 'ca.crl'))}
          >
            {certificates.saveCrl}
          </button>
          {isAdmin && (
            <button type="button" class="button main" onClick={() => setIssuing(true)}>
              {certificates.issue}
            </button>
          )}
        </span>
      }
    >
      <FailureNote failure={fetched.failure} />
      <Facts
        of={[
          [certificates.subject, of.details.subject],
          [certificates.ends, <Validity key="ends" until={of.details.notAfter} />],
          [certificates.domains, of.permittedDomains.join(', ')],
          [certificates.fingerprint, <code key="fingerprint">{of.details.fingerprint}</code>],
        ]}
      />
      {ones.content.length === 0 ? (
        <Empty title={certificates.noIssued} />
      ) : (
        <div class="frame">
          <table>
            <thead>
              <tr>
                <th scope="col">{certificates.name}</th>
                <th scope="col">{certificates.state}</th>
                <th scope="col" class="narrow-off">
                  {certificates.subject}
                </th>
                <th scope="col" class="narrow-off">
                  {certificates.ends}
                </th>
                <th scope="col" class="narrow-off">
                  {certificates.serial}
                </th>
                <td />
              </tr>
            </thead>
            <tbody>
              {ones.content.map((one) => (
                <tr key={one.serial}>
                  <td>
                    <strong>{one.name}</strong>
                    <div class="quiet">{certificates.kindNames[one.kind]}</div>
                  </td>
                  <td>
                    <Pill mood={stateMood(one.state)}>{certificates.states[one.state]}</Pill>
                    {one.revokedAt !== null && <div class="quiet">{dateTime(one.revokedAt)}</div>}
                  </td>
                  <td class="narrow-off">{one.subject}</td>
                  <td class="narrow-off">
                    <Validity until={one.notAfter} />
                  </td>
                  <td class="narrow-off">
                    <code>{one.serial.slice(0, 16)}…</code>
                  </td>
                  <td class="number">
                    {isAdmin && one.state === 'VALID' && (
                      <button
                        type="button"
                        class="button danger"
                        aria-label={certificates.revokeOf(one.name)}
                        onClick={() => setDoomed(one)}
                      >
                        {certificates.revoke}
                      </button>
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {ones.total > ones.content.length && <p class="quiet">{certificates.more(number(ones.total))}</p>}
      {isIssuing && (
        <IssueDialog
          close={() => setIssuing(false)}
          done={(one) => {
            setIssuing(false);
            setMade(one);
            changed();
          }}
        />
      )}
      {made !== undefined && <Handover made={made} ca={of.certificate} close={() => setMade(undefined)} />}
      {doomed !== undefined && (
        <RevokeDialog
          of={doomed}
          close={() => setDoomed(undefined)}
          done={() => {
            setDoomed(undefined);
            changed();
          }}
        />
      )}
    </Card>
  );
};
