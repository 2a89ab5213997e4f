import { pkcs12Bytes } from '../api/certificates.ts';
import { save } from '../api/save.ts';
import type { Made, MadeTls } from '../api/set-up.ts';
import { words as configuration } from '../texts/configuration.ts';
import { bytes, day, number } from '../texts/format.ts';
import { FirstContact } from './first-contact.tsx';
import { Card, Facts } from './page.tsx';
import { Sheet } from './sheet.tsx';

/** Files that go to the partner beside the sheet: the CA that it is to trust, and its own certificate with its key, once. */
const TlsFiles = ({ tls, partnerId }: { readonly tls: MadeTls; readonly partnerId: string }) => {
  const { files } = configuration.value.setUp;
  const { ca, issued } = tls;
  if (ca === undefined && issued === undefined) return null;
  return (
    <Card title={files.title}>
      <div class="row">
        {ca !== undefined && (
          <button type="button" class="button" onClick={() => save(ca.pem, 'ca.pem')}>
            {files.ca}
          </button>
        )}
        {issued !== undefined && (
          <button
            type="button"
            class="button main"
            onClick={() => save(pkcs12Bytes(issued), `${partnerId}.p12`, 'application/x-pkcs12')}
          >
            {files.pkcs12}
          </button>
        )}
      </div>
      {issued !== undefined && (
        <>
          <p class="note warn">{files.once}</p>
          <Facts of={[[files.password, <code key="password">{issued.password}</code>]]} />
        </>
      )}
    </Card>
  );
};

const tlsRows = (tls: MadeTls, { rows }: { readonly rows: (typeof configuration.value)['setUp']['rows'] }) => {
  const { certificate, ca, issued, fingerprint } = tls;
  return [
    [rows.names, certificate?.san.join(', ')],
    [rows.ca, ca?.subject ?? certificate?.issuer],
    [rows.caFingerprint, ca?.fingerprint],
    [rows.ends, certificate === undefined ? undefined : day(certificate.notAfter)],
    [
      rows.yours,
      issued !== undefined ? rows.issued(`${issued.name}.p12`) : fingerprint === undefined ? rows.none : rows.own,
    ],
    [rows.yourFingerprint, fingerprint],
  ] as const;
};

/** What is made, whether it works, and what the partner must know of it. */
export const SetUpResult = ({ of }: { readonly of: Made }) => {
  const { setUp, values, partners } = configuration.value;
  const { partnerId, password, host, tls, operations, file, listener } = of;
  const port = tls === undefined ? (listener.port ?? listener.tlsPort ?? 5001) : (listener.tlsPort ?? 5001);
  const { rows } = setUp;
  const pin = tls?.certificate?.fingerprint;
  const question = {
    ...{ name: `${listener.serverId}-${partnerId}`.toLowerCase(), host, port: String(port) },
    ...{ serverId: listener.serverId, clientId: partnerId },
    ...(operations.includes('WRITE') ? { file: file.fileId } : {}),
    ...(tls === undefined ? {} : { tls: '1', ...(pin === undefined ? {} : { pin }) }),
  };
  return (
    <>
      <p class="note good no-print" role="status">
        {setUp.made(partnerId)}
      </p>
      <div class="columns">
        <div class="stack wide-gap no-print">
          <FirstContact
            {...{ partnerId, password, question }}
            listenerId={listener.serverId}
            fileId={file.fileId}
            hasCertificate={tls?.issued !== undefined}
          />
          {tls !== undefined && <TlsFiles tls={tls} partnerId={partnerId} />}
        </div>
        <Sheet
          title={setUp.sheetTitle(partnerId)}
          rows={[
            [rows.host, host],
            [rows.port, String(port)],
            [rows.tls, tls === undefined ? rows.no : rows.yes],
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
            ...(tls === undefined ? [] : tlsRows(tls, { rows })),
          ]}
          {...(tls?.ca === undefined ? {} : { attached: [rows.caPem, tls.ca.pem] as const })}
        />
      </div>
      <p class="row no-print">
        <a href={`/partners/${encodeURIComponent(partnerId)}`}>{setUp.toPartner(partnerId)}</a>
        <a href="/partners">{partners.back}</a>
      </p>
    </>
  );
};
