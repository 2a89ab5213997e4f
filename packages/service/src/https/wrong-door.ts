import type { Socket } from 'node:net';

/** A host with its port as it may be repeated: no more than names, addresses and digits. */
const HOST = /^host: *([\w.-]{1,255}|\[[0-9a-f:.]{2,45}\])(?::\d{1,5})? *\r?$/im;
const REQUEST = /^[A-Z]{1,20} (\/[\x21-\x7e]{0,500}) HTTP\/1/;

/** The answer to plain HTTP on the port for HTTPS: where to go. @param bytes the first ones of the request */
export const httpsRequired = (bytes: Buffer, { localAddress = '', localPort = 0 }: Socket): string => {
  const text = bytes.toString('latin1', 0, 8192);
  const host = HOST.exec(text)?.[1] ?? (localAddress.includes(':') ? `[${localAddress}]` : localAddress);
  const path = REQUEST.exec(text)?.[1] ?? '/';
  const login = /^authorization:/im.test(text)
    ? '. The login of this request came without TLS: change its password if others may have read it'
    : '';
  const body = JSON.stringify({
    error: 'HTTPS_REQUIRED',
    message: `This port speaks HTTPS: use https://${host}:${localPort}${path}${login}`,
    path: path.split('?', 1)[0],
    timestamp: new Date().toISOString(),
  });
  return (
    'HTTP/1.1 400 Bad Request\r\nConnection: close\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n' +
    `Content-Type: application/json; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
  );
};
