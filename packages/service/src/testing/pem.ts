import { execFileSync } from 'node:child_process';

/**
 * A self-signed certificate and its private key, as the `openssl` command makes them.
 * @param names as `DNS:localhost`; default: none but its subject
 * @returns both in PEM
 */
export const selfSigned = (
  name: string,
  ...names: readonly string[]
): { readonly certificate: string; readonly privateKey: string } => {
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', '-'];
  const sans = names.length === 0 ? [] : ['-addext', `subjectAltName=${names.join(',')}`];
  const made = execFileSync('openssl', ['req', '-x509', ...newKey, '-subj', `/CN=${name}`, '-days', '3650', ...sans], {
    stdio: ['ignore', 'pipe', 'ignore'],
  }).toString();
  const [privateKey = '', certificate = ''] = made.match(/-----BEGIN[^-]+-----[^-]+-----END[^-]+-----\n/g) ?? [];
  return { certificate, privateKey };
};
