import type { Knex } from 'knex';

import type { PodIdentity } from './members.js';

/** The mark that the pods of an app expect in a directory that they share. */
export interface VolumeMark {
  readonly id: string;
  /** The pod that placed it, and when. */
  readonly node: string;
  readonly at: Date;
}

/** Marks of shared directories; the port `VolumeMarks` of the package `storage`. */
export class DatabaseVolumeMarks {
  readonly cluster: string;
  readonly #knex: Knex;
  readonly #pod: PodIdentity;

  constructor(knex: Knex, pod: PodIdentity) {
    this.#knex = knex;
    this.#pod = pod;
    this.cluster = pod.cluster;
  }

  /** @returns undefined: no pod has placed one. @throws when the database cannot be asked */
  async find(directory: string): Promise<VolumeMark | undefined> {
    const { app, cluster } = this.#pod;
    return this.#knex('pesit_common.volume_marks')
      .where({ app, cluster, directory })
      .first<VolumeMark | undefined>('id', 'node', 'at');
  }

  /** The mark of `id` is in the directory. @returns the one that counts: the first. @throws as `find` */
  async settle(directory: string, id: string): Promise<VolumeMark> {
    const { app, cluster, name } = this.#pod;
    await this.#knex('pesit_common.volume_marks')
      .insert({ app, cluster, directory, id, node: name })
      .onConflict(['app', 'cluster', 'directory'])
      .ignore();
    const mark = await this.find(directory);
    if (mark === undefined) throw new Error(`the mark of ${directory} was removed from the database meanwhile`);
    return mark;
  }
}
