/**
 * The license of a PeSIT node (design §4, License): what the vendor sold, and for how long.
 *
 * A license is text: base64 of an RS256 JWT. `verifyLicense` turns it into claims or into a refusal that says why, whatever
 * the time. `decide` makes the state of the product (valid, evaluation or blocked) from the licenses, the evaluation and the
 * time; both are pure. What the time is, when the clock may have been turned, is `clock.ts`.
 */
export { DAY_MS, LICENSE_TYPES } from './claims.js';
export type { LicenseClaims, LicenseType, Limits } from './claims.js';
export type { ClockRecord, SeenTimes } from './clock.js';
export { LicenseKeyError, loadPublicKey, parsePublicKey } from './public-key.js';
export type { VendorKey } from './public-key.js';
export { decide, EVALUATION_LIMITS, WARNING_DAYS } from './state.js';
export type { Extension, LicenseFacts, LicenseStatus } from './state.js';
export { checkLicense, MAX_LICENSE_TEXT, timeFault, verifyLicense } from './verify.js';
export type { License, LicenseFault, LicenseRefusal, Verification } from './verify.js';
