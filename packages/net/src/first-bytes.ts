/** Names who knocks at the wrong door, by the first bytes. */
import { detect } from './detection.js';

const HTTP = /^(GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS|CONNECT|PRI) /;

/** Names what came, as far as its first bytes tell. */
export const nameOf = (bytes: Buffer): string => {
  if (HTTP.test(bytes.toString('latin1', 0, 8))) return 'not PeSIT: the partner speaks HTTP';
  const detection = detect(bytes);
  if (detection.kind === 'connect') return `the partner speaks PeSIT without TLS (${detection.dialect} CONNECT)`;
  if (detection.kind === 'preconnection') return 'the partner speaks PeSIT without TLS (a pre-connection)';
  return 'not PeSIT';
};
