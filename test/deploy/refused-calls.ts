/** Makes each system call whose number is an argument, and prints the errno of each: with arguments that no kernel takes. */
import koffi from 'koffi'

const call = koffi.load(null).func('syscall', 'long', ['long', 'long', 'long', 'long', 'long'])
for (const number of process.argv.slice(2)) {
  const result = Number(call(Number(number), -1, -1, -1, -1))
  console.log(result === -1 ? koffi.errno() : 0)
}
