/* Does not end. */
int main(void)
{
    for (volatile int round = 0;; round++)
        ;
}
