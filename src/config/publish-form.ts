/**
 * How a directory takes its place, and whether the form keeps the names that start with '..' for itself. A new form starts here: the
 * compiler then names each place that lacks it.
 */
export const publishForms = {
  exchange: { reservesDots: false },
  symlink: { reservesDots: true },
} as const satisfies Record<string, { readonly reservesDots: boolean }>

export type PublishForm = keyof typeof publishForms
