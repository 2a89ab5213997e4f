import { useAnswer } from '../api/answer.ts';
import { authority, daysLeft, firstEnd, issued, keystores, truststores } from '../api/certificates.ts';
import { app } from '../api/session.ts';
import { AuthorityCard } from '../parts/authority.tsx';
import { FailureNote } from '../parts/failure-note.tsx';
import { Loading, Page } from '../parts/page.tsx';
import { rowsOfKeystores, rowsOfTruststores, Stores } from '../parts/stores.tsx';
import { SOON_DAYS } from '../parts/validity.tsx';
import { certificatesWords } from '../texts/certificates.ts';
import { texts } from '../texts/index.ts';
import '../style/certificates.css';

const EVERY_MS = 60_000;

/** Who this node is, whom it believes, and what its own CA has issued; what ends soon comes first. */
export const CertificatesPage = () => {
  const { pages } = texts.value;
  const certificates = certificatesWords.value;
  const kind = app.value;
  const own = useAnswer(`keystores ${kind}`, keystores, EVERY_MS);
  const trusted = useAnswer(`truststores ${kind}`, truststores, EVERY_MS);
  const ca = useAnswer(`authority ${kind}`, authority, EVERY_MS);
  const ones = useAnswer(`issued ${kind}`, issued, EVERY_MS);
  const all = [own, trusted, ca, ones];
  const ask = (): void => all.forEach((one) => one.ask());
  const failed = all.find(({ failure }) => failure !== undefined);
  const isKnown = own.value !== undefined && trusted.value !== undefined;
  const rows = { keystores: rowsOfKeystores(own.value ?? []), truststores: rowsOfTruststores(trusted.value ?? []) };
  const soon = [...rows.keystores, ...rows.truststores].filter((row) => {
    const end = firstEnd(row.certificates);
    return end !== undefined && daysLeft(end) <= SOON_DAYS;
  });
  return (
    <Page title={pages.certificates}>
      <FailureNote failure={failed?.failure} again={ask} isStale={failed?.value !== undefined} />
      {isKnown ? (
        <>
          {soon.length > 0 && <p class="note warn">{certificates.soon(soon.map(({ name }) => name).join(', '))}</p>}
          <Stores kind="keystores" of={rows.keystores} changed={ask} />
          <Stores kind="truststores" of={rows.truststores} changed={ask} />
          {kind === 'server' && ca.value !== undefined && (
            <AuthorityCard of={ca.value} ones={ones.value ?? { content: [], total: 0 }} changed={ask} />
          )}
        </>
      ) : (
        failed === undefined && <Loading />
      )}
    </Page>
  );
};
