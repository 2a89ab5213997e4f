/**
 * The license of a PeSIT node (design §4, License): what the vendor sold, and for how long.
 *
 * A license is text: base64 of an RS256 JWT. `verifyLicense` turns it into claims or into a refusal that says why, whatever
 * the time; everything after that is arithmetic on claims and on time, without I/O.
 */
export { DAY_MS, LICENSE_TYPES } from './claims.js';
export type { LicenseClaims, LicenseType, Limits } from './claims.js';
export { LicenseKeyError, loadPublicKey, parsePublicKey } from './public-key.js';
export type { VendorKey } from './public-key.js';
export { checkLicense, MAX_LICENSE_TEXT, timeFault, verifyLicense } from './verify.js';
export type { License, LicenseFault, LicenseRefusal, Verification } from './verify.js';
