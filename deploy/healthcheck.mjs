/**
 * `node healthcheck.mjs [liveness|readiness]`: exit code 0 while the service of this machine or container answers that it is alive
 * (by default) or ready. For places without curl; it asks the port of SERVER_PORT, over HTTPS where SERVER_SSL_ENABLED says so.
 */
import { request as http } from 'node:http';
import { request as https } from 'node:https';

const ANSWER_WITHIN_MS = 5000;

const probe = process.argv[2] ?? 'liveness';
const isSecure = process.env.SERVER_SSL_ENABLED === 'true';
const url = `${isSecure ? 'https' : 'http'}://127.0.0.1:${process.env.SERVER_PORT ?? 8080}/actuator/health/${probe}`;
const fail = (text) => {
  console.error(text);
  process.exitCode = 1;
};
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
