/**
 * `node healthcheck.mjs [liveness|readiness]`: exit code 0 while the service of this machine or container answers that it is alive
 * (by default) or ready. For places without curl; it asks the port of SERVER_PORT.
 */
const ANSWER_WITHIN_MS = 5000;

const probe = process.argv[2] ?? 'liveness';
const url = `http://127.0.0.1:${process.env.SERVER_PORT ?? 8080}/actuator/health/${probe}`;
try {
  const answer = await fetch(url, { signal: AbortSignal.timeout(ANSWER_WITHIN_MS) });
  if (!answer.ok) console.error(`${url} answered ${answer.status}: ${await answer.text()}`);
  process.exitCode = answer.ok ? 0 : 1;
} catch (error) {
  console.error(`${url} does not answer: ${error.cause?.message ?? error.message}`);
  process.exitCode = 1;
}
