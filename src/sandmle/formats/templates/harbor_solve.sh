#!/bin/bash
# The reference: what the hidden rule itself predicts.
cp /solution/oracle.csv /app/submission.csv
