import type { Routes } from '@pesit-node/service';
import { z } from 'zod';

import { KEYSTORE, storeName } from '../fields.js';
import type { KeystoreGiven, KeystoreRow, NewKeystore } from '../fields.js';
import { unreadable } from '../faults.js';
import { refuseJks } from '../read/certificate.js';
import { identityFromPem, identityFromPkcs12, readBase64 } from '../read/identity.js';
import type { IdentityMaterial } from '../read/identity.js';
import { keystoreView } from '../views.js';
import { storeRoutes } from './store-routes.js';
import type { StoreRoutesDeps } from './store-routes.js';

const form = z.strictObject({ name: storeName().optional(), password: z.string().optional() });

/** @param before what a field that is not given stays */
const materialOf = async (
  { certificate, privateKey, pkcs12, password }: KeystoreGiven,
  before?: { readonly certificate: string; readonly privateKey: () => string },
): Promise<IdentityMaterial> => {
  if (pkcs12 !== undefined && (certificate !== undefined || privateKey !== undefined)) {
    throw unreadable('pkcs12', 'expected certificate and privateKey, or pkcs12 alone');
  }
  if (pkcs12 !== undefined) return identityFromPkcs12(readBase64(pkcs12), password ?? '');
  const chain = certificate ?? before?.certificate;
  if (chain === undefined) throw unreadable('certificate', 'required: the chain in PEM, or pkcs12');
  const key = privateKey ?? before?.privateKey();
  if (key === undefined) throw unreadable('privateKey', 'required: the private key in PEM, or pkcs12');
  return identityFromPem(chain, key, password);
};

/** A file is told by how it begins. */
const fromFile = (file: Buffer): Readonly<Record<string, string>> => {
  refuseJks(file, 'file');
  // A SEQUENCE: DER.
  if (file[0] === 0x30) return { pkcs12: file.toString('base64') };
  const text = file.toString('utf8');
  if (!text.includes('-----BEGIN ')) throw unreadable('file', 'expected a PKCS#12 or PEM');
  return { certificate: text, privateKey: text };
};

export const keystoreRoutes = (routes: Routes, deps: StoreRoutesDeps): void => {
  const { keystores: store } = deps.certificates;
  storeRoutes<KeystoreRow, NewKeystore, KeystoreGiven>(routes, deps, {
    kind: 'keystore',
    ...{ create: KEYSTORE.create, update: KEYSTORE.update, answer: KEYSTORE.answer, form, fromFile },
    store,
    audited: (audit, by) => audit.change(KEYSTORE, by),
    view: keystoreView,
    add: async (name, body, audited) => {
      const material = await materialOf(KEYSTORE.asked(body));
      const row = await store.add(name, material, audited);
      return row && { row, said: material.warnings, fields: [] };
    },
    change: async (before, body, audited) => {
      const change = KEYSTORE.changes(body, before);
      const fields = Object.keys(change).filter((field) => field !== 'password');
      if (fields.length === 0) return { row: before, said: [], fields };
      const material = await materialOf(change, {
        certificate: before.certificate,
        privateKey: () => store.privateKeyOf(before),
      });
      const row = await store.replace(before.name, material, false, audited);
      return row && { row, said: material.warnings, fields };
    },
  });
};
