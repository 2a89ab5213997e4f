/**
 * `node healthcheck.mjs [liveness|readiness]`: exit code 0 while the service of this machine or container answers that it is alive
 * (by default) or ready. For places without curl. It asks the port of `server.port`, over HTTPS where `server.ssl.enabled` says so: from
 * SERVER_PORT and SERVER_SSL_ENABLED, else from the file that PESIT_CONFIG names, as the service does. It does not see flags.
 */
import { readFileSync } from 'node:fs';
import { request as http } from 'node:http';
import { request as https } from 'node:https';

const ANSWER_WITHIN_MS = 5000;

const probe = process.argv[2] ?? 'liveness';
const fail = (text) => {
  console.error(text);
  process.exitCode = 1;
};

/** A key may be nested or dotted, and the parts of a name in any mixture of both. */
const within = (mapping, name) => {
  if (typeof mapping !== 'object' || mapping === null) return undefined;
  for (const [key, value] of Object.entries(mapping)) {
    if (key === name) return value;
    const found = name.startsWith(`${key}.`) ? within(value, name.slice(key.length + 1)) : undefined;
    if (found !== undefined) return found;
  }
  return undefined;
};

const { PESIT_CONFIG: file, SERVER_PORT, SERVER_SSL_ENABLED } = process.env;
let configured;
if (file && !(SERVER_PORT && SERVER_SSL_ENABLED)) {
  try {
    // Only where it is needed: a probe is a process every few seconds.
    const { parse } = await import('yaml');
    configured = parse(readFileSync(file, 'utf8'));
  } catch (error) {
    // The service runs with what it has read earlier.
    console.error(`PESIT_CONFIG ${file} cannot be read (${error.message}): its keys count as not set`);
  }
}
const port = SERVER_PORT || within(configured, 'server.port') || 8080;
const isSecure = String(SERVER_SSL_ENABLED || within(configured, 'server.ssl.enabled')) === 'true';
const url = `${isSecure ? 'https' : 'http'}://127.0.0.1:${port}/actuator/health/${probe}`;
// As probes of Kubernetes do: the certificate is for those who send something.
const options = { signal: AbortSignal.timeout(ANSWER_WITHIN_MS), rejectUnauthorized: false };
(isSecure ? https : http)(url, options, (answer) => {
  let text = '';
  answer.setEncoding('utf8');
  answer.on('data', (piece) => (text += piece));
  answer.on('end', () => {
    if (answer.statusCode !== 200) fail(`${url} answered ${answer.statusCode}: ${text}`);
  });
})
  .on('error', (error) => fail(`${url} does not answer: ${error.message}`))
  .end();
