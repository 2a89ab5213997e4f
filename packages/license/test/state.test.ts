import { describe, expect, test } from '@jest/globals';

import { decide } from '../src/state.js';
import type { LicenseFacts } from '../src/state.js';
import { verifyLicense } from '../src/verify.js';
import type { License } from '../src/verify.js';
import { license, VENDOR_KEY } from './support/vendor.js';

const START = Date.parse('2027-03-01T08:00:00Z');
const at = (time: string): number => Date.parse(time.length === 10 ? `${time}T12:00:00Z` : time);

const read = (claims: Parameters<typeof license>[0]): License => {
  const result = verifyLicense(license(claims), VENDOR_KEY);
  if (!result.ok) throw new Error(result.refusal.message);
  return result.license;
};

const facts = (licenses: readonly License[] = [], more: Partial<LicenseFacts> = {}): LicenseFacts => ({
  licenses,
  clock: { startedAt: START, counted: START, highest: START },
  extensions: [],
  evaluationDays: 30,
  ...more,
});

describe('the license object', () => {
  test('in evaluation', () => {
    expect(decide(facts(), at('2027-03-11'))).toEqual({
      valid: false,
      evaluation: true,
      blocked: false,
      type: 'EVALUATION',
      licenseId: null,
      customer: null,
      expirationDate: '2027-03-31',
      daysUntilExpiration: 20,
      maxClusters: 1,
      maxPodsPerCluster: 3,
      evaluationStartDate: '2027-03-01',
      evaluationExpirationDate: '2027-03-31',
      evaluationDaysRemaining: 20,
      message: 'Evaluation: 20 days left. Install a license with POST /api/v1/license',
    });
  });

  test('with a license', () => {
    const installed = read({ type: 'BUSINESS', maxClusters: undefined, maxPodsPerCluster: undefined });
    expect(decide(facts([installed]), at('2027-12-31'))).toEqual({
      valid: true,
      evaluation: false,
      blocked: false,
      type: 'BUSINESS',
      licenseId: 'L-0001',
      customer: 'Banque Exemple',
      expirationDate: '2027-12-31',
      daysUntilExpiration: 1,
      maxClusters: 5,
      maxPodsPerCluster: -1,
      message: 'Licensed to Banque Exemple until 2027-12-31',
    });
  });

  test('blocked, without a license', () => {
    expect(decide(facts(), at('2027-04-11'))).toEqual({
      valid: false,
      evaluation: false,
      blocked: true,
      type: 'EVALUATION',
      licenseId: null,
      customer: null,
      expirationDate: '2027-03-31',
      daysUntilExpiration: 0,
      maxClusters: 1,
      maxPodsPerCluster: 3,
      evaluationStartDate: '2027-03-01',
      evaluationExpirationDate: '2027-03-31',
      evaluationDaysRemaining: 0,
      message: 'The evaluation period is over since 2027-03-31. Install a license with POST /api/v1/license',
    });
  });

  test('blocked, when the license is over', () => {
    expect(decide(facts([read({})]), at('2028-01-01'))).toMatchObject({
      valid: false,
      blocked: true,
      type: 'PROFESSIONAL',
      customer: 'Banque Exemple',
      expirationDate: '2027-12-31',
      daysUntilExpiration: 0,
      evaluationDaysRemaining: 0,
      message:
        'License L-0001 expired on 2027-12-31; it is 2028-01-01T12:00:00.000Z here; no evaluation is left. Install a license with POST /api/v1/license',
    });
  });
});

const SHORT = read({ licenseId: 'SHORT', expiryDate: '2027-03-10' });
const LONG = read({ licenseId: 'LONG', expiryDate: '2027-12-31' });
const LATER = read({ licenseId: 'LATER', nbf: at('2027-06-01') / 1000, expiryDate: '2028-12-31' });

test.each<[string, LicenseFacts, string, string, number]>([
  ['first start', facts(), '2027-03-01T08:00:00Z', 'evaluation', 30],
  ['a day has begun', facts(), '2027-03-01T08:00:01Z', 'evaluation', 30],
  ['the last millisecond', facts(), '2027-03-31T07:59:59.999Z', 'evaluation', 1],
  ['evaluation → blocked', facts(), '2027-03-31T08:00:00Z', 'blocked', 0],
  ['no evaluation at all', facts([], { evaluationDays: 0 }), '2027-03-01T08:00:00Z', 'blocked', 0],
  ['blocked → valid', facts([LONG]), '2027-04-11', 'valid', 265],
  ['no evaluation, but licensed', facts([LONG], { evaluationDays: 0 }), '2027-03-01', 'valid', 306],
  ['valid → evaluation that is left', facts([SHORT]), '2027-03-11', 'evaluation', 20],
  ['valid → blocked', facts([LONG]), '2028-01-01T00:00:00Z', 'blocked', 0],
  ['expired → valid again', facts([SHORT, LONG]), '2027-03-11', 'valid', 296],
  ['the one that lasts longest', facts([LONG, SHORT]), '2027-03-05', 'valid', 302],
  ['one whose time has not come', facts([LATER]), '2027-05-31', 'blocked', 0],
  ['its time comes', facts([LATER]), '2027-06-01T12:00:00Z', 'valid', 580],
  [
    'the clock turned back before it',
    facts([LATER], { clock: { startedAt: START, counted: at('2027-07-01'), highest: at('2027-07-01') } }),
    '2027-05-31',
    'valid',
    550,
  ],
  [
    'the clock turned back before its end',
    facts([SHORT], { clock: { startedAt: START, counted: at('2027-04-05'), highest: at('2027-04-05') } }),
    '2027-03-05',
    'blocked',
    0,
  ],
])('%s', (_, given, now, mode, left) => {
  const status = decide(given, at(now));
  const modes = (['valid', 'evaluation', 'blocked'] as const).filter((name) => status[name]);
  expect([modes, status.daysUntilExpiration]).toEqual([[mode], left]);
});

test('of licenses that last equally long the more generous wins, on all pods the same', () => {
  const one = read({ licenseId: 'B', type: 'PROFESSIONAL' });
  const two = read({ licenseId: 'C', type: 'ENTERPRISE' });
  const three = read({ licenseId: 'A', type: 'ENTERPRISE' });
  for (const licenses of [
    [one, two, three],
    [three, two, one],
    [two, three, one],
  ]) {
    expect(decide(facts(licenses), at('2027-06-01')).licenseId).toBe('A');
  }
});

test('a date beyond the calendar is still a date', () => {
  const extensions = Array.from({ length: 10_000 }, () => ({ days: 365, at: START, counted: START }));
  expect(decide(facts([], { extensions }), at('2027-03-02'))).toMatchObject({ evaluationExpirationDate: '9999-12-31' });
});
