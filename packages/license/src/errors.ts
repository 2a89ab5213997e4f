import type { ClusterUsage } from '@pesit-node/cluster';

import type { LicenseClaims } from './claims.js';
import type { LicenseFault, LicenseRefusal } from './verify.js';

/** More days than the build allows all extensions together. */
export class ExtensionCapError extends Error {
  override readonly name = 'ExtensionCapError';

  /** @param used days that were added before */
  constructor(cap: number, used: number, days: number) {
    const left = Math.max(0, cap - used);
    super(
      `This build allows ${cap} days of extension in all, ${used} were added before: expected at most ${left} more, got ${days}. ` +
        'Install a license with POST /api/v1/license',
    );
  }
}

/** A license text that is not installed, and why. */
export class LicenseRefusedError extends Error {
  override readonly name = 'LicenseRefusedError';
  readonly fault: LicenseFault;

  constructor({ fault, message }: LicenseRefusal) {
    super(message);
    this.fault = fault;
  }
}

const limit = (value: number): string => (value === -1 ? 'unlimited' : String(value));

/** A valid license that allows less than what runs: installed only by force. */
export class LicenseTooSmallError extends Error {
  override readonly name = 'LicenseTooSmallError';

  constructor(
    { licenseId, maxClusters, maxPodsPerCluster }: LicenseClaims,
    { clusters, podsPerCluster }: ClusterUsage,
  ) {
    super(
      `License ${licenseId} allows ${limit(maxClusters)} clusters and ${limit(maxPodsPerCluster)} pods in each, ` +
        `but ${clusters} and ${podsPerCluster} run: stop some first, or repeat with ?force=true`,
    );
  }
}
