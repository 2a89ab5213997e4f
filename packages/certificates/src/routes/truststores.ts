import type { Routes, ValuesOf } from '@pesit-node/service';
import { z } from 'zod';

import { storeName, TRUSTSTORE } from '../fields.js';
import type { NewTruststore, TruststoreGiven, TruststoreRow } from '../fields.js';
import { refuseJks } from '../read/certificate.js';
import { readCrls, requireIssuers } from '../read/crl.js';
import { writePem } from '../read/pem.js';
import { trustFromPem } from '../read/trust.js';
import { storedCertificates } from '../stored.js';
import { truststoreView } from '../views.js';
import { storeRoutes } from './store-routes.js';
import type { StoreRoutesDeps } from './store-routes.js';

const form = z.strictObject({ name: storeName().optional() });

/** PEM, or one certificate in DER. */
const fromFile = (file: Buffer): Readonly<Record<string, string>> => {
  refuseJks(file, 'file');
  const isDer = file[0] === 0x30;
  return { certificates: isDer ? writePem('CERTIFICATE', file) : file.toString('utf8') };
};

/** Checks what changes against what stays. @throws {UploadError} */
const columnsOf = (
  { certificates, crls }: TruststoreGiven,
  before: Pick<TruststoreRow, 'certificates' | 'crls'>,
): { readonly values: Partial<ValuesOf<typeof TRUSTSTORE.rows>>; readonly said: readonly string[] } => {
  const trust = certificates === undefined ? undefined : trustFromPem(certificates);
  const lists = crls === undefined ? before.crls : crls;
  const read = lists === null ? [] : readCrls(lists);
  const cas = storedCertificates(trust?.certificates ?? before.certificates);
  requireIssuers(read, cas);
  return {
    values: {
      ...(trust === undefined ? {} : { certificates: trust.certificates }),
      ...(crls === undefined ? {} : { crls: crls === null ? null : read.map(({ pem }) => pem).join('') }),
    },
    said: trust?.warnings ?? [],
  };
};

export const truststoreRoutes = (routes: Routes, deps: StoreRoutesDeps): void => {
  const { truststores: store } = deps.certificates;
  storeRoutes<TruststoreRow, NewTruststore, TruststoreGiven>(routes, deps, {
    kind: 'truststore',
    ...{ create: TRUSTSTORE.create, update: TRUSTSTORE.update, answer: TRUSTSTORE.answer, form, fromFile },
    store,
    view: truststoreView,
    add: async (name, body) => {
      const { values, said } = columnsOf(TRUSTSTORE.asked(body), { certificates: '', crls: null });
      const row = await store.create(name, values);
      return row && { row, said, fields: [] };
    },
    change: async (before, body) => {
      const change = TRUSTSTORE.changes(body, before);
      const fields = Object.keys(change);
      if (fields.length === 0) return { row: before, said: [], fields };
      const { values, said } = columnsOf(change, before);
      const row = await store.change(before.name, values);
      return row && { row, said, fields };
    },
  });
};
