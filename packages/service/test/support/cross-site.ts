import { expect } from '@jest/globals';
import { routesOf } from '@pesit-node/service/testing';
import type { Express } from 'express';
import request from 'supertest';

/** What a page of another origin sends along, whether it wants to or not. */
const FOREIGN: readonly Readonly<Record<string, string>>[] = [
  { Origin: 'https://evil.example' },
  { Origin: 'null' },
  { 'Sec-Fetch-Site': 'cross-site' },
  { 'Sec-Fetch-Site': 'same-site', Origin: 'https://console.bank.example' },
];

/** Asks every route of an app that may change something, with a login, without a body, as a page of another origin would. */
export const expectCrossSiteRefused = async (app: Express, authorization: string): Promise<void> => {
  const unsafe = routesOf(app)
    .map((route) => route.replace(/\{\w+\}/g, '1').split(' ') as [string, string])
    .filter(([method]) => method !== 'GET');
  expect(unsafe.length).toBeGreaterThan(10);
  for (const [method, path] of unsafe) {
    const call = () => request(app)[method.toLowerCase() as 'post'](path).set('Authorization', authorization);
    for (const headers of FOREIGN) {
      const { status, body } = await call().set(headers);
      expect([method, path, headers, status, body.error]).toEqual([method, path, headers, 403, 'FORBIDDEN']);
    }
    const own = await call().set({ Host: 'node.bank:8080', Origin: 'http://node.bank:8080' });
    expect([method, path, own.status]).not.toEqual([method, path, 403]);
    expect([method, path, own.headers['cache-control']]).toEqual([method, path, 'no-store']);
  }
};
