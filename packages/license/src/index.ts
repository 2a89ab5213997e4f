/**
 * The license of a PeSIT node (design §4, License): what the vendor sold, and for how long.
 *
 * A license is text: base64 of an RS256 JWT. `verifyLicense` turns it into claims or into a refusal that says why, whatever
 * the time. `decide` makes the state of the product (valid, evaluation or blocked) from the licenses, the evaluation and the
 * time; both are pure. `clock.ts` finds the time when the clock may have been turned.
 *
 * `LicenseKeeper` holds the state of a running app: it reads the store (`KnexLicenseStore`, schema `pesit_common`, shared by
 * all pods and both apps), counts the time, loads what the configuration names, and installs. `Admission` puts it together with
 * the cluster: whether this pod is within the limits, and may take sessions and transfers. `licenseGate` and `Admission` are
 * asked at any time and never wait; `licenseRoutes` are the endpoints. An app makes all of it by `createFoundation`, with the
 * database and the cluster, and its REST interface by `createLicensedApp`.
 */
export { Admission } from './admission.js';
export type { SessionRefusal } from './admission.js';
export { bakeBuild, BakeError } from './bake.js';
export type { BakeOptions } from './bake.js';
export { BUILD, EVALUATION_BUILD } from './build.js';
export type { Build } from './build.js';
export { DAY_MS, LICENSE_TYPES } from './claims.js';
export type { LicenseClaims, LicenseType, Limits } from './claims.js';
export type { ClockRecord, SeenTimes } from './clock.js';
export { ExtensionCapError, LicenseRefusedError, LicenseTooSmallError } from './errors.js';
export { LICENSE_KEY } from './first-stage.js';
export { createFoundation } from './foundation.js';
export type { Foundation, FoundationOptions } from './foundation.js';
export { licenseGate, LICENSE_PATH } from './gate.js';
export type { LicenseRequiredBody } from './gate.js';
export { inspectLicense, issueLicense, IssueError } from './issue.js';
export type { Inspection } from './issue.js';
export { LicenseKeeper } from './keeper.js';
export type { LicenseKeeperOptions, LicenseLog } from './keeper.js';
export { createLicensedApp } from './licensed-app.js';
export type { LicensedAppOptions } from './licensed-app.js';
export { placeOf } from './limits.js';
export type { Place } from './limits.js';
export { LICENSE_MIGRATIONS } from './migrations/index.js';
export { LicenseKeyError, loadPublicKey, parsePublicKey } from './public-key.js';
export type { VendorKey } from './public-key.js';
export { decide, EVALUATION_LIMITS, WARNING_DAYS } from './state.js';
export type { Extension, LicenseFacts, LicenseStatus } from './state.js';
export { KnexLicenseStore } from './store.js';
export type { Installation, LicenseSource, LicenseStore, StoredClock } from './store.js';
export type { LicenseClock } from './timekeeper.js';
export { checkLicense, MAX_LICENSE_TEXT, timeFault, verifyLicense } from './verify.js';
export type { License, LicenseFault, LicenseRefusal, Verification } from './verify.js';
export type { HistoryTable, LicenseWitness } from './witness.js';
