/** Cost that the license gate of both apps adds to a request: the middleware alone, in this process. */
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { DAY_MS, decide, licenseGate } from '@pesit-node/license';
import type { Measurement } from './figures.js';

/** Requests through the gate in the last days of an evaluation: it lets them pass, and sets its header on each. */
export const licenseGateRun = (requests: number): Measurement => {
  const start = Date.UTC(2027, 2, 1);
  const clock = { startedAt: start, counted: start, highest: start };
  const status = decide({ licenses: [], extensions: [], clock, evaluationDays: 10 }, start + DAY_MS);
  const gate = licenseGate({ status });
  const request = Object.assign(new IncomingMessage(new Socket()), { path: '/api/v1/transfers' });
  let passed = 0;
  const next = (): void => {
    passed++;
  };
  const cpuBefore = process.cpuUsage();
  const began = process.hrtime.bigint();
  for (let index = 0; index < requests; index++) {
    void gate(request as never, new ServerResponse(request) as never, next);
  }
  const seconds = Number(process.hrtime.bigint() - began) / 1e9;
  const { user, system } = process.cpuUsage(cpuBefore);
  if (passed !== requests) throw new Error(`license gate: ${requests} requests, ${passed} let through`);
  const peakRssMb = (process.resourceUsage().maxRSS * 1024) / 1e6;
  return {
    seconds,
    bytes: 0,
    transfers: requests,
    processes: [{ name: 'gate', cpuSeconds: (user + system) / 1e6, peakRssMb }],
  };
};
