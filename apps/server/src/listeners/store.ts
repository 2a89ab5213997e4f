import { FieldStore } from '@pesit-node/service';
import type { Knex } from 'knex';

import { LISTENER } from './fields.js';

export class ListenerStore extends FieldStore<typeof LISTENER.rows> {
  constructor(knex: Knex) {
    super(knex, LISTENER);
  }
}
