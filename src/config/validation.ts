/** The values that `validate` may list. A new one starts here: the compiler then names each place that lacks it. */
export const validations = ['certificates'] as const

export type Validation = (typeof validations)[number]
