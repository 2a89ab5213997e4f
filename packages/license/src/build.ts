/**
 * Settings inside a build. A build for customers is made by `bakeBuild`, which replaces the text of `BAKED` in the built file; as it
 * comes from the repository a build is for evaluation.
 */
export interface Build {
  /** The vendor's public key in PEM; undefined: an evaluation build. */
  readonly vendorKey: string | undefined;
  /** Most days that all extensions of an evaluation together add; undefined: any. */
  readonly maxExtensionDays: number | undefined;
}

/** JSON of a `Build`. It stays a line of its own, with these quotes. */
const BAKED = '{}';

export const EVALUATION_BUILD: Build = { vendorKey: undefined, maxExtensionDays: undefined };

/** The build that runs. */
export const BUILD: Build = { ...EVALUATION_BUILD, ...(JSON.parse(BAKED) as Partial<Build>) };
