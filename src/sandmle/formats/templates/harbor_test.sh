#!/bin/bash
# Grades submission.csv and writes /logs/verifier/reward.json.
mkdir -p /logs/verifier
python3 /tests/grade.py /app/submission.csv /logs/verifier/reward.json
