import { roleOf } from '../http/routes.js';
import type { MountedOperation } from '../http/routes.js';
import { reaches, ROLES } from './roles.js';

/** A table of the operations that need a login and who may call them, for docs/roles.md. Other names of a path have no row. */
export const rolesMarkdown = (operations: readonly MountedOperation[]): string => {
  const rows = operations
    .filter(({ aliasOf, operation: { access } }) => aliasOf === undefined && access !== 'open')
    .map(({ method, path, operation }) => {
      const may = ROLES.map((role) => (reaches(role, roleOf(method, operation)) ? 'yes' : 'no'));
      return [`\`${method.toUpperCase()} ${path}\``, operation.summary, ...may];
    });
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |\n`;
  const table = [['Operation', 'What it does', ...ROLES], ['---', '---', ...ROLES.map(() => '---')], ...rows];
  return table.map(line).join('');
};
