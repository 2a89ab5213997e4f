/** Reasons of a revocation (RFC 5280 §5.3.1). */
export const REASON_NAMES = [
  'unspecified',
  'keyCompromise',
  'cACompromise',
  'affiliationChanged',
  'superseded',
  'cessationOfOperation',
  'certificateHold',
  'removeFromCRL',
  'privilegeWithdrawn',
  'aACompromise',
] as const;

export type Reason = (typeof REASON_NAMES)[number];
