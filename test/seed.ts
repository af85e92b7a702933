/**
 * The one seed of all random choices of a test: HOLDFAST_SEED, which replays a run, or a new one for each run. A test that draws from it
 * prints it with `replay`.
 */
const given = process.env.HOLDFAST_SEED

if (given !== undefined && !/^\d{1,9}$/.test(given)) {
  throw new RangeError(`HOLDFAST_SEED must be a whole number of at most nine digits, not ${JSON.stringify(given)}`)
}

export const replaying = given !== undefined

export const seed = given === undefined ? Math.floor(Math.random() * 1e9) : Number(given)

/** For a test's title or a comment of its output. */
export const replay = `replay with HOLDFAST_SEED=${seed}`
