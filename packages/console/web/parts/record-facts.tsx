import type { ComponentChildren } from 'preact';

import type { Attempt, Detail } from '../api/transfers.ts';
import { bytes, dateTime, exactBytes, number, rate, span } from '../texts/format.ts';
import { texts } from '../texts/index.ts';
import { recordWords } from '../texts/record.ts';
import { Facts } from './page.tsx';

type Rows = readonly (readonly [string, ComponentChildren])[];

const at = (value: string | null): string | null => (value === null ? null : dateTime(value));
const mono = (value: string | number | null) => (value === null || value === '' ? null : <code>{value}</code>);

/** What both apps know of a transfer, and what one of them knows. */
export const RecordFacts = ({ detail }: { readonly detail: Detail }) => {
  const { fields } = recordWords.value;
  const { common } = texts.value;
  const { of } = detail;
  const seconds = (of.duration ?? 0) / 1000;
  const shared: Rows = [
    [fields.size, of.size === null ? null : `${bytes(of.size)} (${number(of.size)})`],
    [fields.bytes, `${bytes(of.bytesTransferred)} (${number(of.bytesTransferred)})`],
    [fields.articles, number(of.articles)],
    [fields.since, at(of.startTime)],
    [fields.ended, at(of.endTime)],
    [fields.duration, of.duration === null ? null : span(of.duration)],
    [fields.rate, seconds > 0 && of.bytesTransferred > 0 ? rate(of.bytesTransferred / seconds) : null],
    [fields.label, of.label],
    [fields.freeMessage, of.freeMessage],
    [fields.originalSender, of.originalSender],
    [fields.finalReceiver, of.finalReceiver],
    [fields.creationDate, of.creationDate],
    [fields.checksum, mono(of.checksum)],
    [fields.node, of.node],
  ];
  const own: Rows =
    detail.app === 'server'
      ? [
          [fields.peer.server, detail.of.partnerId],
          [fields.virtualFile, detail.of.virtualFileId],
          [fields.filename, detail.of.filename],
          ...shared,
          [fields.complement, detail.of.diagnosticComplement],
          [fields.listener, detail.of.listener],
          [fields.address, detail.of.remoteAddress],
          [fields.session, mono(detail.of.sessionId)],
          [fields.pi13, mono(detail.of.transferId)],
          [fields.message, detail.of.message],
          [fields.id, mono(detail.of.id)],
        ]
      : [
          [fields.peer.client, detail.of.serverName],
          [fields.virtualFile, detail.of.virtualFile],
          [fields.filename, detail.of.filename],
          [fields.remoteFilename, detail.of.remoteFilename],
          ...shared,
          [fields.localPath, mono(detail.of.localPath)],
          [fields.created, at(detail.of.createdTime)],
          [fields.createdBy, detail.of.createdBy],
          [fields.priority, number(detail.of.priority)],
          [fields.notBefore, at(detail.of.notBefore)],
          [fields.expiresAt, at(detail.of.expiresAt)],
          [fields.ordered, detail.of.ordered ? common.yes : null],
          [fields.pi13, mono(detail.of.pesitTransferId)],
          [fields.id, mono(detail.of.id)],
        ];
  return <Facts of={own} />;
};

type Terms = NonNullable<Attempt['terms']>;
type Value = string | number | boolean | null | undefined;

/** A term in words; one that was not asked for, or is not known, is a dash. */
const termWord = (name: keyof Terms['agreed'], value: Value): string => {
  const { common } = texts.value;
  if (value === null || value === undefined) return common.none;
  if (typeof value === 'boolean') return value ? common.yes : common.no;
  if (typeof value === 'string') return value;
  if (name === 'version') return value === 1 ? 'D' : value === 2 ? 'E' : String(value);
  if (name === 'maxEntitySize') return exactBytes(value, 0);
  return name === 'syncInterval' ? exactBytes(value, 1) : number(value);
};

const TERMS = [
  'dialect',
  'version',
  'crc',
  'maxEntitySize',
  'syncInterval',
  'syncWindow',
  'compression',
  'resync',
] as const satisfies readonly (keyof Terms['agreed'])[];

/** What was asked for and what was agreed on, side by side. */
export const TermsTable = ({ terms }: { readonly terms: Terms }) => {
  const { termNames, asked, agreed } = recordWords.value;
  const askedFor: Readonly<Partial<Record<(typeof TERMS)[number], Value>>> = terms.asked;
  return (
    <div class="frame">
      <table>
        <thead>
          <tr>
            <td />
            <th scope="col">{asked}</th>
            <th scope="col">{agreed}</th>
          </tr>
        </thead>
        <tbody>
          {TERMS.map((name) => (
            <tr key={name}>
              <th scope="row">{termNames[name]}</th>
              <td>{name in terms.asked ? termWord(name, askedFor[name]) : ''}</td>
              <td>{termWord(name, terms.agreed[name])}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
};
