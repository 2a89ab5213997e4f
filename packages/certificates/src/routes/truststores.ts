import type { Routes, ValuesOf } from '@pesit-node/service';
import { z } from 'zod';

import { storeName, TRUSTSTORE } from '../fields.js';
import type { NewTruststore, TruststoreGiven, TruststoreRow } from '../fields.js';
import { refuseJks } from '../read/certificate.js';
import { checkCrls, isCrl, PEM_BYTES, readCrls } from '../read/crl.js';
import { writePem } from '../read/pem.js';
import { trustFromPem } from '../read/trust.js';
import { storedCertificates } from '../stored.js';
import { truststoreView } from '../views.js';
import { storeRoutes } from './store-routes.js';
import type { StoreRoutesDeps } from './store-routes.js';

const form = z.strictObject({ name: storeName().optional() });

/** PEM with certificates, CRLs or both; or one certificate or CRL in DER. */
const fromFile = (file: Buffer): Readonly<Record<string, string>> => {
  refuseJks(file, 'file');
  if (file[0] === 0x30) {
    return isCrl(file) ? { crls: writePem('X509 CRL', file) } : { certificates: writePem('CERTIFICATE', file) };
  }
  const text = file.toString('utf8');
  const hasCrls = text.includes('-----BEGIN X509 CRL-----');
  return {
    ...(hasCrls ? { crls: text } : {}),
    ...(!hasCrls || text.includes('CERTIFICATE-----') ? { certificates: text } : {}),
  };
};

/** Checks what changes against what stays. @throws {UploadError} */
const columnsOf = async (
  { certificates, crls, crlUrls }: TruststoreGiven,
  before: Pick<TruststoreRow, 'certificates' | 'crls'>,
): Promise<{ readonly values: Partial<ValuesOf<typeof TRUSTSTORE.rows>>; readonly said: readonly string[] }> => {
  const trust = certificates === undefined ? undefined : trustFromPem(certificates);
  const lists = crls === undefined ? before.crls : crls;
  const read = lists === null ? [] : readCrls(lists);
  const cas = storedCertificates(trust?.certificates ?? before.certificates);
  await checkCrls(read, cas);
  return {
    values: {
      ...(trust === undefined ? {} : { certificates: trust.certificates }),
      ...(crls === undefined
        ? {}
        : { crls: crls === null ? null : read.map(({ der }) => writePem('X509 CRL', der)).join('') }),
      ...(crlUrls === undefined ? {} : { crl_urls: crlUrls }),
    },
    said: trust?.warnings ?? [],
  };
};

export const truststoreRoutes = (routes: Routes, deps: StoreRoutesDeps): void => {
  const { truststores: store } = deps.certificates;
  storeRoutes<TruststoreRow, NewTruststore, TruststoreGiven>(routes, deps, {
    kind: 'truststore',
    ...{ create: TRUSTSTORE.create, update: TRUSTSTORE.update, answer: TRUSTSTORE.answer, form, fromFile },
    formBytes: PEM_BYTES,
    store,
    audited: (audit, by) => audit.change(TRUSTSTORE, by),
    view: truststoreView,
    add: async (name, body, audited) => {
      const { values, said } = await columnsOf(TRUSTSTORE.asked(body), { certificates: '', crls: null });
      const row = await store.create(name, values, audited);
      return row && { row, said, fields: [] };
    },
    change: async (before, body, audited) => {
      const change = TRUSTSTORE.changes(body, before);
      const fields = Object.keys(change);
      if (fields.length === 0) return { row: before, said: [], fields };
      const { values, said } = await columnsOf(change, before);
      const row = await store.change(before.name, values, audited);
      return row && { row, said, fields };
    },
  });
};
